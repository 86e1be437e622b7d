//! What the shapes of all routes have in common: the trait, identifiers and finish reasons.
//! Knows no order of events.

use crate::clock::unix_s;
use crate::wire::Usage;
use motley_engine::batching::{Event, Reason};
use serde::Serialize;

/// Turns the events of a request into the shapes of one route.
pub(crate) trait EventFormatter: Send + 'static {
    /// A piece of the response, as a stream sends it.
    type Chunk: Serialize + Send;
    /// The whole response.
    type Response: Serialize;

    /// What `event` adds to the choice at `index`.
    fn chunks(&mut self, index: usize, event: Event) -> Vec<Self::Chunk>;
    /// The chunk with the token counts.
    fn usage_chunk(&self, usage: Usage) -> Self::Chunk;
    /// All chunks put together.
    fn response(self, chunks: Vec<Self::Chunk>, usage: Usage) -> Self::Response;
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
pub(super) fn finish_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop => "stop",
        Reason::Length => "length",
    }
}

/// `chatcmpl-…` and the like; long enough that no two are the same by chance.
pub(super) fn random_id(prefix: &str) -> String {
    format!("{prefix}-{:016x}{:08x}", fastrand::u64(..), fastrand::u32(..))
}
