//! Traces: where the time of each request for text went, told to an OpenTelemetry collector. Built
//! with feature `otel`; without it nothing is told to anybody.
//!
//! * `collector`: where traces go, found before a sandbox closes; `client`: HTTP to it.
//! * `export`: spans on their way, in a thread that no answer waits for.
//! * `span`: the span of a request and its stages; `routes`: which requests have one.
//! * `disabled`: the same without the feature.
//!
//! Prompts and answers are never part of a span.

#[cfg(feature = "otel")]
mod client;
#[cfg(feature = "otel")]
mod collector;
#[cfg(not(feature = "otel"))]
mod disabled;
#[cfg(feature = "otel")]
mod export;
#[cfg(feature = "otel")]
mod routes;
#[cfg(feature = "otel")]
mod span;

#[cfg(feature = "otel")]
pub use collector::{Collector, CollectorError};
#[cfg(not(feature = "otel"))]
pub use disabled::Telemetry;
#[cfg(feature = "otel")]
pub use export::Telemetry;

#[cfg(not(feature = "otel"))]
pub(crate) use disabled::{RequestSpan, traced};
#[cfg(feature = "otel")]
pub(crate) use routes::traced;
#[cfg(feature = "otel")]
pub(crate) use span::RequestSpan;
