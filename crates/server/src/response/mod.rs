//! From the engine's events to what a client reads: one JSON response, or a stream of
//! server-sent events.
//!
//! * `formatter`: what every route's shapes have in common.
//! * `chat`, `completion`, `infill`, `anthropic`, `responses`, `ollama`: the shapes of one route each;
//!   `parts`: an answer as a row of parts, for those that write it so.
//! * `respond`: submits a request and sends what comes back, whole or as a stream.

mod anthropic;
mod chat;
mod completion;
pub(crate) mod formatter;
mod infill;
mod ollama;
mod parts;
mod respond;
mod responses;

pub(crate) use anthropic::MessagesFormatter;
pub(crate) use chat::ChatFormatter;
pub(crate) use completion::CompletionFormatter;
pub(crate) use formatter::EventFormatter;
pub(crate) use infill::InfillFormatter;
pub(crate) use ollama::{OllamaFormatter, OllamaShape, loaded, nanoseconds};
pub(crate) use respond::{respond, submit};
pub(crate) use responses::ResponsesFormatter;
