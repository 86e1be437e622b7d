//! What the shapes of all routes have in common: the trait, identifiers and finish reasons.
//! Knows no order of events.

use crate::clock::unix_s;
use crate::error::ApiError;
use crate::wire::Usage;
use motley_engine::batching::{Event, Reason};
use serde::Serialize;
use std::hash::{BuildHasher, RandomState};

/// Turns the events of a request into the shapes of one route.
pub(crate) trait EventFormatter: Send + 'static {
    /// A piece of the response, as a stream sends it.
    type Chunk: Serialize + Send;
    /// The whole response.
    type Response: Serialize;

    /// How a stream separates its chunks.
    const FRAMING: Framing;

    /// What a stream begins with (optional: nothing), before the first event.
    fn begin(&mut self) -> Vec<Self::Chunk> {
        Vec::new()
    }
    /// What `event` adds to the choice at `index`.
    fn chunks(&mut self, index: usize, event: Event) -> Vec<Self::Chunk>;
    /// What a stream ends with, when all choices are complete and their tokens counted.
    fn end(&mut self, usage: Usage) -> Vec<Self::Chunk>;
    /// The name a server-sent event carries beside its data (optional: none).
    fn name(_chunk: &Self::Chunk) -> Option<&'static str> {
        None
    }
    /// What a stream that cannot go on ends with.
    fn failure(&mut self, error: &ApiError) -> Frame;
    /// All chunks put together.
    fn response(self, chunks: Vec<Self::Chunk>, usage: Usage) -> Self::Response;
}

/// How a stream separates its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `data: {…}`, and `[DONE]` after the last: OpenAI's older routes.
    EventsUntilDone,
    /// `event: name`, `data: {…}`; the last event says by its name that it is.
    NamedEvents,
    /// One JSON value a line.
    Lines,
}

/// One item of a stream, written out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(super) name: Option<&'static str>,
    pub(super) data: String,
}

impl Frame {
    pub(super) fn new(name: Option<&'static str>, value: &impl Serialize) -> Self {
        Self { name, data: serde_json::to_string(value).unwrap_or_default() }
    }
}

/// What every chunk of one response repeats.
pub(super) struct ResponseHead {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
}

impl ResponseHead {
    pub(super) fn new(id_prefix: &str, model: &str) -> Self {
        Self { id: random_id(id_prefix), created: unix_s(), model: model.into() }
    }
}

/// `stop` or `length`.
pub(crate) fn finish_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop | Reason::StopString(_) => "stop",
        Reason::Length => "length",
    }
}

/// `chatcmpl-…` and the like. No two are the same by chance, and none can be guessed from others:
/// who knows the identifier of a kept response may read it. The standard library's hashers are
/// keyed by the system's randomness.
pub(super) fn random_id(prefix: &str) -> String {
    let random = || RandomState::new().hash_one(prefix);
    format!("{prefix}{:016x}{:016x}", random(), random())
}
