//! What goes into the next step of continuous batching: which sequences, how many
//! prompt tokens, what is forgotten to make room (M10, M3). Decides only; the driver
//! moves llama.cpp's cache and computes.
//!
//! ```text
//!  submit ──► waiting ──► active ──► kept as a prefix ──► forgotten
//!                ▲          │  finish(keep)                  ▲
//!                └──────────┴────────── finish(drop) ────────┘
//!               sent back when cells run out: youngest first
//! ```
//!
//! * Every active sequence with one token to compute is in every step; prompts share
//!   what is left of the step, oldest first, and at most
//!   [`BatchLimits::prefill_beside_decode`] tokens while others decode. So nobody waits
//!   longer than one bounded step for a token, and the oldest prompt always moves.
//! * Those that decode have half of the time to themselves (`turns`), and a short prompt goes
//!   before long ones, in the queue (`waiting`) as in a step. With [`BatchLimits::step_time`] a
//!   long one goes on by chunks that take no longer (`pace`).
//! * Clients have shares of the time by their weights (`client`, `shares`): one that is ahead by
//!   more than half a step sits out. So every active sequence is in every step only where clients
//!   are about level.
//! * Requests of a higher priority are before others in the queue and in a step, but pass the
//!   first that waits so many times only.
//! * A sequence may send strictly younger ones back when cells run out; the oldest
//!   therefore always ends, and then the next is the oldest.
//! * A prompt begins with the longest prefix any other sequence has computed. While an
//!   older one is computing a prefix both share, the younger waits and copies it.
//! * Where a model's memory cannot be cut (`states`), what of it cannot is saved at the ends of
//!   messages, and a prompt begins with the longest prefix that ends at such a place.
//! * With a disk to keep them (`disk`, `segments`), beginnings of prompts outlive sequences and the
//!   process, and are read where that is faster than computing them.
//! * With [`Sharing::Parts`] a prompt goes where its own beginning is kept, or else beside
//!   those that run, and prompts of a step are cut to one length: llama.cpp computes
//!   neighbouring sequences of equal length together and every other run by itself.

mod cells;
mod client;
mod disk;
mod entry;
mod on_disk;
mod order;
mod pace;
mod planner;
mod reset;
mod saved;
mod segments;
mod sequence;
mod shares;
mod states;
mod turns;
mod waiting;

pub use client::{Client, ClientId, Priority};
pub use planner::{Figures, Planner};
pub use segments::{Segment, SegmentKey, SegmentLengths, SegmentLimits};

use std::time::Duration;

/// Names a request; the caller's choice, unique among those not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// The bounds within which steps are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Sequences the context has.
    pub sequences: u16,
    /// KV cells of all sequences together.
    pub cells: u32,
    /// Most tokens of one sequence, however many cells there are.
    pub longest_tokens: u32,
    /// Most tokens in one step; at least [`BatchLimits::sequences`].
    pub step_tokens: u32,
    /// Most prompt tokens in a step in which others decode.
    pub prefill_beside_decode: u32,
    /// Wished most time of a step with prompts: their chunks are cut by what their last ones
    /// took. Without effect where chunks are as long as they came ([`Sharing::Nothing`]).
    pub step_time: Option<Duration>,
    /// Most requests waiting for a sequence.
    pub waiting: usize,
    /// How sequences share the cache.
    pub sharing: Sharing,
}

/// How sequences share the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One cache for all: computed prefixes are reused.
    Prefixes,
    /// One cache for all; prefixes cannot be cut out of this model's memory.
    Cells,
    /// As [`Sharing::Cells`], and states saved at the ends of messages: computed prefixes are
    /// reused up to one of those.
    States {
        /// Most states at a time.
        most: u16,
    },
    /// Each sequence has its own equal part of the cells, and all are computed together:
    /// attention looks at a sequence's own cells only, and so does the search for prefixes.
    Parts,
    /// Each sequence has its own equal part of the cells, and its prompt is computed
    /// in whole chunks of the length it came with: what one stream computes does not
    /// depend on the others.
    Nothing,
}

/// What a request brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Who asks.
    pub client: Client,
    /// Its tokens; at least one.
    pub tokens: Vec<i32>,
    /// Length of its chunks with [`Sharing::Nothing`].
    pub chunk_tokens: u32,
    /// Tokens before the end of each of its messages, ascending, with [`Sharing::States`].
    pub boundaries: Vec<u32>,
}

/// Names a saved state of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u64);

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many wait already as may.
    #[error("{waiting} requests are waiting already")]
    QueueFull { waiting: usize },
    /// Prompt and one answer token are longer than a sequence may get.
    #[error("{tokens} tokens do not fit into {longest}")]
    TooLong {
        /// Tokens of the prompt.
        tokens: usize,
        longest: u32,
    },
    /// There is nothing to compute.
    #[error("the prompt is empty")]
    Empty,
}

/// A change of the cache, to be made in order before the step's tokens are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Forget all of a sequence.
    Drop { sequence: u16 },
    /// The first `tokens` tokens of `from` belong to the empty `to` as well.
    Copy {
        /// Sequence that has them.
        from: u16,
        /// Sequence that gets them.
        to: u16,
        tokens: u32,
    },
    /// Forget all of a sequence but its first `tokens` tokens.
    Cut {
        sequence: u16,
        /// How many stay.
        tokens: u32,
    },
    /// Copy aside what of a sequence's memory cannot be cut, as it is now.
    Save { sequence: u16, state: StateId },
    /// Put that back, into a sequence that has at least the tokens it was saved after.
    Restore { sequence: u16, state: StateId },
    /// Forget a saved state.
    Discard { state: StateId },
    /// Put a segment of a sequence on disk: its tokens are computed, and where memory cannot be
    /// cut they are all it has.
    Store { sequence: u16, segment: Segment },
    /// Put a segment from disk into a sequence that has the tokens before it.
    Load { sequence: u16, segment: Segment },
    /// Forget a segment.
    Erase { segment: SegmentKey },
}

/// One sequence's share of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPart {
    pub request: RequestId,
    /// Sequence it runs in.
    pub sequence: u16,
    /// Position of its first token.
    pub first: u32,
    pub tokens: u32,
    /// Whether a token is sampled after its last: the sequence has none left.
    pub samples: bool,
    /// Whether it is the one token the sequence sampled last, not one of a prompt's chunk.
    pub decodes: bool,
}

/// The next step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// To be made first, in order.
    pub changes: Vec<Change>,
    /// To be computed together.
    pub parts: Vec<StepPart>,
}
