//! From the engine's events to what a client reads: one JSON response, or a stream of
//! server-sent events.
//!
//! * `formatter`: what every route's shapes have in common.
//! * `chat`, `completion`: the shapes of one route each.
//! * `respond`: submits a request and sends what comes back, whole or as a stream.

mod chat;
mod completion;
mod formatter;
mod respond;

pub(crate) use chat::ChatFormatter;
pub(crate) use completion::CompletionFormatter;
pub(crate) use formatter::EventFormatter;
pub(crate) use respond::{respond, submit};
