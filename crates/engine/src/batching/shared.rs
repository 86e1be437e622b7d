//! What the batching thread and its handles share: options, counts, requests on their way.

use super::health::HealthRecord;
use super::stream::{Ask, Event};
use crate::blocks::figures::StreamFigures;
use crate::clock::Clock;
use motley_ggml::SeamCounts;
use motley_model::{Embedding, KvType};
use motley_sched::Phase;
use motley_sched::batch::{self, BatchLimits, Planner, Sharing};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// Shape of the context all requests share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// KV cache length in tokens, all sequences together.
    pub context_tokens: u32,
    /// Most tokens of one sequence, however long the cache is: models answer nonsense beyond what
    /// they were trained for.
    pub longest_tokens: u32,
    /// What it is kept in.
    pub kv: KvType,
    /// Most requests answered at once.
    pub sequences: u16,
    /// Most tokens computed together.
    pub step_tokens: u32,
    /// Most prompt tokens computed in a step in which others decode: bounds the time
    /// between two tokens of a stream.
    pub prefill_beside_decode: u32,
    /// Most time of a step with prompts, about: others wait no longer to be taken into one.
    pub step_time: Option<Duration>,
    /// Most requests that wait for a sequence.
    pub waiting: usize,
    /// Each stream has an equal part of the cache to itself instead of a share of one:
    /// attention then looks at its own tokens only, which pays with many streams, and no
    /// stream can get longer than its part. Models whose memory cannot be cut share one.
    pub own_caches: bool,
    /// A prompt begins with what others have computed of it. Otherwise every request computes
    /// all of its prompt, and cannot learn what others said.
    pub share_prefixes: bool,
    /// Most states saved at the ends of messages, for models whose memory cannot be cut; with 0
    /// their prompts are always computed whole.
    pub saved_states: u16,
    /// Each stream's tokens equal those of a session by itself.
    pub exact: bool,
    /// Requests are texts, and each gets a vector in place of an answer.
    pub embedding: Option<Embedding>,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            context_tokens: 8192,
            longest_tokens: u32::MAX,
            kv: KvType::F16,
            sequences: 16,
            step_tokens: 512,
            prefill_beside_decode: 128,
            step_time: None,
            waiting: 128,
            own_caches: false,
            share_prefixes: true,
            saved_states: 8,
            exact: false,
            embedding: None,
        }
    }
}

impl BatchOptions {
    /// Most rows of one call.
    pub(super) fn batch_tokens(&self) -> u32 {
        self.step_tokens.max(u32::from(self.sequences)).min(self.context_tokens)
    }

    /// The same for a model that makes vectors. Nothing is shared between texts; where a text cannot
    /// be computed in pieces it is computed alone, and is no longer than a step.
    pub fn for_texts(self, embedding: Embedding) -> Self {
        let texts = Self {
            share_prefixes: false,
            saved_states: 0,
            own_caches: false,
            embedding: Some(embedding),
            ..self
        };
        if embedding.in_pieces() {
            return texts;
        }
        let step = texts.step_tokens.min(texts.context_tokens);
        // A request is shorter than the longest: there is no token to be said.
        let longest_tokens = texts.longest_tokens.min(step.saturating_add(1));
        Self { sequences: 1, step_time: None, longest_tokens, ..texts }
    }

    /// How streams share the cache of a model whose memory can be cut at every position, or not.
    pub fn sharing(&self, keeps_every_position: bool) -> Sharing {
        match (self.exact, keeps_every_position, self.own_caches) {
            (true, _, _) => Sharing::Nothing,
            (false, false, _) if self.share_prefixes && self.saved_states > 0 => {
                Sharing::States { most: self.saved_states }
            }
            (false, false, _) => Sharing::Cells,
            (false, true, true) => Sharing::Parts,
            (false, true, false) if !self.share_prefixes => Sharing::Cells,
            (false, true, false) => Sharing::Prefixes,
        }
    }

    /// The longest a sequence may get with `sharing`.
    pub fn longest(&self, sharing: Sharing) -> u32 {
        Planner::new(self.limits(sharing)).longest()
    }

    /// The planner's bounds. How many may wait is held at the door, before a request is taken.
    pub(super) fn limits(&self, sharing: Sharing) -> BatchLimits {
        BatchLimits {
            sequences: self.sequences,
            cells: self.context_tokens,
            longest_tokens: self.longest_tokens,
            step_tokens: self.batch_tokens(),
            prefill_beside_decode: self.prefill_beside_decode,
            step_time: self.step_time,
            waiting: usize::MAX,
            sharing,
        }
    }
}

/// Counts of the batching thread so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchFigures {
    /// Where the planner stands.
    pub planner: batch::Figures,
    pub steps: u64,
    /// Prompt tokens computed.
    pub prompt_tokens: u64,
    /// Tokens sampled.
    pub answer_tokens: u64,
    pub answered: u64,
    /// Requests whose client went away.
    pub cancelled: u64,
    /// Requests whose time was over before they were answered.
    pub late: u64,
    /// Requests that ended with an error.
    pub failed: u64,
    /// Cuts of the cache that the context refused.
    pub failed_cuts: u64,
    /// Of the steps those in which streams decoded and no prompt was computed.
    pub decode_steps: u64,
    pub busy: Duration,
    /// Of it in steps that only decoded.
    pub decode_busy: Duration,
    pub longest_step: Duration,
    /// What went through the seam.
    pub seam: SeamCounts,
    /// What streaming did, when experts are read on demand.
    pub stream: Option<StreamFigures>,
}

impl BatchFigures {
    /// Time spent on steps of `phase`: decode has no prompt's rows among it.
    pub fn busy_in(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Prefill => self.busy.saturating_sub(self.decode_busy),
            Phase::Decode => self.decode_busy,
        }
    }
}

/// A request on its way to the thread.
pub(super) struct Incoming {
    pub(super) id: batch::RequestId,
    pub(super) ask: Ask,
    pub(super) events: mpsc::Sender<Event>,
    /// When it was handed in, by the clock of the worker.
    pub(super) came: Duration,
}

/// What the thread and its handles share.
pub(super) struct Shared {
    pub(super) next_id: AtomicU64,
    /// Submitted and without a sequence.
    pub(super) waiting: AtomicUsize,
    pub(super) figures: Mutex<BatchFigures>,
    pub(super) health: HealthRecord,
    pub(super) clock: Arc<dyn Clock>,
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            next_id: AtomicU64::default(),
            waiting: AtomicUsize::default(),
            figures: Mutex::default(),
            health: HealthRecord::default(),
            clock,
        }
    }
}
