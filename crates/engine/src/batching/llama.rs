//! llama.cpp's context as what the batching worker computes with.

use super::compute::{Compute, ComputeError, ComputeFigures};
use super::shared::BatchOptions;
use crate::blocks::figures::SharedFigures;
use crate::blocks::resident::ExpertPlaces;
use crate::blocks::routing::RoutingWatcher;
use crate::blocks::step::CurrentStep;
use crate::{Engine, SessionError};
use motley_ggml::{Batch, BatchToken, Context, ContextOptions, DecodeError, PoolChoice};
use motley_plan::budget::SessionShape;
use motley_sched::Phase;
use motley_sched::batch::{Sharing, StateId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// llama.cpp's context with its batch.
pub(super) struct LlamaCompute {
    context: Context,
    batch: Batch,
    blocks: Arc<SharedFigures>,
    /// What the batch under way is, for its blocks.
    step: Arc<CurrentStep>,
    /// Saved states of sequences.
    states: BTreeMap<StateId, Vec<u8>>,
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
            kv: options.kv,
            batch_tokens: options.batch_tokens(),
            sequences: u32::from(options.sequences),
            unified: !matches!(sharing, Sharing::Parts | Sharing::Nothing),
            precise_attention: false,
        };
        let counted = SessionShape {
            context_tokens: shape.context_tokens,
            kv: shape.kv,
            chunk_tokens: shape.batch_tokens,
            output_tokens: shape.sequences,
            states: shape.sequences + u32::from(options.saved_states),
        };
        let step = Arc::<CurrentStep>::default();
        let (drive, blocks) = engine.drive(counted, watcher, Arc::clone(&step))?;
        let context = engine.context(&shape, drive)?;
        let batch = Batch::with_capacity(options.batch_tokens() as usize);
        Ok(Self { context, batch, blocks, step, states: BTreeMap::new() })
    }

    /// Which experts are in memory; `None` when all are.
    pub(super) fn places(&self) -> Option<ExpertPlaces> {
        self.blocks.places()
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
            model_changed: matches!(error, DecodeError::ModelChanged { .. })
                || self.blocks.model_changed(),
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

    fn save(&mut self, sequence: i32, state: StateId) -> bool {
        let saved = self.context.save_state(sequence);
        saved.map(|bytes| self.states.insert(state, bytes)).is_some()
    }

    fn restore(&mut self, sequence: i32, state: StateId) -> bool {
        let saved = self.states.get(&state);
        saved.is_some_and(|bytes| self.context.restore_state(sequence, bytes))
    }

    fn discard(&mut self, state: StateId) {
        self.states.remove(&state);
    }

    fn clear(&mut self) {
        self.states.clear();
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
