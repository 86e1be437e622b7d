//! `motley-server`: an OpenAI-compatible server on one engine or several. A door: it checks requests,
//! hands them to the batching thread and writes the responses. It holds no model code and
//! no scheduling.
//!
//! Modules, in reading order:
//! * [`options`]: what a server is started with, and its limits.
//! * [`serve`]: accepting, limiting, draining.
//! * `peers`: who a peer is, and its connections.
//! * [`models`]: what handlers share, and the models: loaded when asked for, unloaded when idle.
//! * `app`: one loaded model; `begin`: made of an engine.
//! * `routes`: the routes and the checks before them; `auth`: the key; [`keys`]: what who has one
//!   may have; `host`: the name a request was sent to; [`origin`]: whose pages may call.
//! * `gate`: who may be read and prepared; `body`: bounded JSON; `priority`: of who prepares.
//! * [`error`]: the API's error bodies; `dialect`: the same in the words of other APIs.
//! * [`wire`]: the API's types.
//! * `api`: one file per route.
//! * `request`: from a request to work for the engine: `params`, `prompt`, `schema`.
//! * `response`: from the engine's events to responses and streams; `kept`: responses that others
//!   may continue.
//! * `trial`: a body taken as far as the engine's door, and no further; for fuzzers only.
//! * `metrics`, `scrape`, `vllm_names`: Prometheus; `workers`: other machines' figures;
//!   `expert_counts`: which experts were chosen; `page`: the page at `/`; `clock`: the time of day.
//! * [`telemetry`]: traces of requests, with feature `otel`.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a door: it reads the clock and owns threads")]

/// Events with prompts and answers, which a server writes with [`ServeOptions::log_text`] only,
/// have this target: a log shows them by it, whatever else it shows.
pub const LOG_TEXT_TARGET: &str = "motley::text";

mod api;
mod app;
mod auth;
mod begin;
mod body;
mod clock;
mod dialect;
pub mod error;
mod expert_counts;
mod gate;
mod host;
mod kept;
pub mod keys;
mod metrics;
pub mod models;
pub mod options;
pub mod origin;
mod page;
mod peers;
mod priority;
mod request;
mod response;
mod routes;
mod scrape;
pub mod serve;
pub mod telemetry;
#[cfg(fuzzing)]
pub mod trial;
mod vllm_names;
pub mod wire;
mod workers;

pub use api::openapi::openapi_json;
pub use keys::{ApiKey, KeyTerms};
pub use models::offered::{LoadError, LoadedModel, Loader, Memory, OfferedModel, OfferedModels};
pub use options::{ServeLimits, ServeOptions, bodies_bytes};
pub use origin::{CorsOrigin, NoOrigin};
pub use serve::{ServeError, Server};
pub use telemetry::Telemetry;
