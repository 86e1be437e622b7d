//! Blocks of one context of the host, to the model they belong to. Which model that is, only its
//! blocks tell: ggml makes a backend for a context without saying whose it is.

use crate::known::Known;
use crate::model::Model;
use motley_ggml::hosted::BufferId;
use motley_ggml::{BlockError, BlockExecutor, ComputeOutcome, CpuUnit, ExpertBlock};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The executor of one context.
pub(crate) struct ContextBlocks {
    known: Arc<Mutex<Known>>,
    /// Of the last block: a context has one model.
    last: Option<(BufferId, Weak<Model>)>,
}

impl ContextBlocks {
    pub(crate) fn new(known: Arc<Mutex<Known>>) -> Self {
        Self { known, last: None }
    }

    fn model_of(&mut self, buffer: BufferId) -> Option<Arc<Model>> {
        if let Some((last, model)) = &self.last
            && *last == buffer
            && let Some(model) = model.upgrade()
        {
            return Some(model);
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let model = known.model_of(buffer)?;
        self.last = Some((buffer, Arc::downgrade(&model)));
        Some(model)
    }
}

impl BlockExecutor for ContextBlocks {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let model = block.buffer_id().and_then(|buffer| self.model_of(buffer));
        let unknown = || BlockError {
            layer: block.layer(),
            reason: "these experts belong to no model that was handed over".into(),
        };
        model.ok_or_else(unknown)?.execute(block, cpu)
    }
}
