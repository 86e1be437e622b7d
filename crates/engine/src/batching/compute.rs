//! What the batching worker needs of a context, and llama.cpp's context as that. Decides
//! nothing; a simulation puts a model whose answers are known in its place.

use super::shared::BatchOptions;
use crate::blocks::figures::{SharedFigures, StreamFigures};
use crate::blocks::resident::ResidentExperts;
use crate::blocks::routing::RoutingWatcher;
use crate::blocks::step::CurrentStep;
use crate::{Engine, SessionError};
use motley_ggml::{
    Batch, BatchToken, Context, ContextOptions, DecodeError, PoolChoice, SeamCounts,
};
use motley_plan::budget::SessionShape;
use motley_sched::Phase;
use motley_sched::batch::Sharing;
use std::borrow::Cow;
use std::sync::Arc;

/// A cache of sequences over a model. Positions of a sequence are `0..` without gaps.
pub trait Compute {
    /// Computes `rows` together; their logits are then at [`Compute::logits`]. After an error
    /// the sequences in it may hold any part of the rows: the worker drops them whole.
    fn decode(&mut self, rows: &[BatchToken], phase: Phase) -> Result<(), ComputeError>;

    /// Logits `[vocab]` of the row at `index`, which asked for them.
    fn logits(&self, index: usize) -> Option<&[f32]>;

    /// Drops `sequence` from `position` on; `false` when it cannot be cut there.
    fn truncate(&mut self, sequence: i32, position: i32) -> bool;

    /// The first `tokens` positions of `from` belong to the empty `to` as well.
    fn copy_prefix(&mut self, from: i32, to: i32, tokens: i32);

    /// Empties every sequence.
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

/// llama.cpp's context with its batch.
pub(super) struct LlamaCompute {
    context: Context,
    batch: Batch,
    blocks: Arc<SharedFigures>,
    /// What the batch under way is, for its blocks.
    step: Arc<CurrentStep>,
}

impl LlamaCompute {
    pub(super) fn new(
        engine: &Engine,
        options: &BatchOptions,
        sharing: Sharing,
        watcher: Option<Box<dyn RoutingWatcher>>,
    ) -> Result<Self, SessionError> {
        let shape = ContextOptions {
            context_tokens: options.context_tokens,
            batch_tokens: options.batch_tokens(),
            sequences: u32::from(options.sequences),
            unified: matches!(sharing, Sharing::Prefixes | Sharing::Cells),
            precise_attention: false,
        };
        let counted = SessionShape {
            context_tokens: shape.context_tokens,
            chunk_tokens: shape.batch_tokens,
            output_tokens: shape.sequences,
        };
        let step = Arc::<CurrentStep>::default();
        let (drive, blocks) = engine.drive(counted, watcher, Arc::clone(&step))?;
        let context = engine.context(&shape, drive)?;
        let batch = Batch::with_capacity(options.batch_tokens() as usize);
        Ok(Self { context, batch, blocks, step })
    }

    /// Which experts are in memory; `None` when all are.
    pub(super) fn resident(&self) -> Option<Arc<ResidentExperts>> {
        self.blocks.resident()
    }
}

/// Whether only the sequences of the failed batch are affected, by llama.cpp's word.
fn leaves_others_alone(error: &DecodeError) -> bool {
    use DecodeError::{Cancelled, Engine, Executor, NoRoom};
    matches!(error, NoRoom | Cancelled | Executor(_) | Engine(_))
}

impl Compute for LlamaCompute {
    fn decode(&mut self, rows: &[BatchToken], phase: Phase) -> Result<(), ComputeError> {
        self.batch.clear();
        rows.iter().for_each(|&row| self.batch.push(row));
        self.step.set(phase);
        let decoded = self.context.decode(&self.batch, PoolChoice::of(phase == Phase::Decode));
        decoded.map_err(|error| ComputeError {
            reason: error.to_string(),
            model_changed: self.blocks.model_changed(),
            cache_lost: !leaves_others_alone(&error),
        })
    }

    fn logits(&self, index: usize) -> Option<&[f32]> {
        self.context.logits(index)
    }

    fn truncate(&mut self, sequence: i32, position: i32) -> bool {
        self.context.truncate(sequence, position)
    }

    fn copy_prefix(&mut self, from: i32, to: i32, tokens: i32) {
        self.context.copy_prefix(from, to, tokens);
    }

    fn clear(&mut self) {
        self.context.clear();
    }

    fn vocab_size(&self) -> usize {
        self.context.model().vocab_size()
    }

    fn is_end(&self, token: i32) -> bool {
        self.context.model().is_end(token)
    }

    fn token_bytes(&self, token: i32, control: bool) -> Cow<'_, [u8]> {
        self.context.model().token_bytes(token, control).into()
    }

    fn figures(&self) -> ComputeFigures {
        ComputeFigures { seam: self.context.seam_counts(), stream: self.blocks.get().stream }
    }
}
