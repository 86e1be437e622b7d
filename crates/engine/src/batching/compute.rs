//! What the batching worker needs of a context. Decides nothing; `llama` is the real one, and a
//! simulation puts a model whose answers are known in its place.

use crate::blocks::figures::StreamFigures;
use motley_ggml::{BatchToken, SeamCounts};
use motley_sched::Phase;
use motley_sched::batch::{Segment, SegmentKey, SegmentLimits, StateId};
use std::borrow::Cow;
use std::time::Duration;

/// A cache of sequences over a model. Positions of a sequence are `0..` without gaps.
pub trait Compute {
    /// Computes `rows` together; their logits are then at [`Compute::logits`]. After an error
    /// the sequences in it may hold any part of the rows: the worker drops them whole.
    fn decode(&mut self, rows: &[BatchToken], phase: Phase) -> Result<(), ComputeError>;

    /// Logits `[vocab]` of the row at `index`, which asked for them.
    fn logits(&self, index: usize) -> Option<&[f32]>;

    /// The vector of `sequence`, whose last rows were computed just now; `None` of a model that
    /// answers.
    fn vector(&self, sequence: i32) -> Option<&[f32]>;

    /// Drops `sequence` from `position` on; `false` when it cannot be cut there.
    fn truncate(&mut self, sequence: i32, position: i32) -> bool;

    /// The first `tokens` positions of `from` belong to the empty `to` as well.
    fn copy_prefix(&mut self, from: i32, to: i32, tokens: i32);

    /// Keeps what of `sequence`'s memory cannot be cut, as it is now, under the name `state`;
    /// `false` when it cannot be had.
    fn save(&mut self, sequence: i32, state: StateId) -> bool;

    /// Gives `sequence` what was kept as `state`; `false` when that cannot be done.
    fn restore(&mut self, sequence: i32, state: StateId) -> bool;

    /// Forgets what was kept as `state`.
    fn discard(&mut self, state: StateId);

    /// What is kept on disk of prompts, and what is there, most recently used last; asked for once.
    fn on_disk(&mut self) -> Option<(SegmentLimits, Vec<Segment>)>;

    /// Keeps a segment of `sequence` on disk; its bytes there, `None` when it cannot be had.
    fn store(&mut self, sequence: i32, segment: &Segment) -> Option<u64>;

    /// Puts a segment from disk at the end of `sequence`; `false` when it is not there as it was,
    /// and the sequence is as before.
    fn load(&mut self, sequence: i32, segment: &Segment) -> bool;

    /// Forgets a segment on disk.
    fn erase(&mut self, segment: SegmentKey);

    /// Empties every sequence, and forgets every state.
    fn clear(&mut self);

    /// Tokens of the vocabulary.
    fn vocab_size(&self) -> usize;

    /// Whether `token` ends an answer.
    fn is_end(&self, token: i32) -> bool;

    /// The bytes of `token`; control tokens written out when `control` is set, else empty.
    fn token_bytes(&self, token: i32, control: bool) -> Cow<'_, [u8]>;

    /// What was counted so far.
    fn figures(&self) -> ComputeFigures;
}

/// What a context counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct ComputeFigures {
    /// What went through the seam.
    pub seam: SeamCounts,
    /// What streaming did, when experts are read on demand.
    pub stream: Option<StreamFigures>,
    /// Time in which steps had nothing to compute until experts came.
    pub stalled: Duration,
}

/// Why rows were not computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ComputeError {
    /// In words for the user.
    pub reason: String,
    /// Whether the model's files are not what was loaded: no later step can succeed.
    pub model_changed: bool,
    /// Whether what the cache holds is not known any more: no step can succeed before
    /// [`Compute::clear`].
    pub cache_lost: bool,
}
