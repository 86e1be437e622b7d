//! What was seen of the host so far: its models, and which buffer holds whose experts. Remembers;
//! decides nothing.

use crate::model::Model;
use motley_ggml::hosted::BufferId;
use motley_ggml::hosted::maps::{self, Mapping};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Known {
    /// Models whose files were open when their loader asked, the last asked about at the end.
    pub(crate) models: Vec<Arc<Model>>,
    /// Files that are no model here: their paths, so that each is said once.
    pub(crate) refused: Vec<PathBuf>,
    /// Where each buffer's experts are.
    pub(crate) buffers: HashMap<BufferId, Arc<Model>>,
    /// The first tensor a loader asked about: asked again, it is another load.
    pub(crate) first_asked: Option<String>,
    pub(crate) mappings: Vec<Mapping>,
}

impl Known {
    /// The model that holds a buffer's experts.
    pub(crate) fn model_of(&self, buffer: BufferId) -> Option<Arc<Model>> {
        self.buffers.get(&buffer).cloned()
    }

    /// Models that nobody loaded after all, or has freed.
    pub(crate) fn forget_unused(&mut self) {
        let Self { models, buffers, .. } = self;
        models.retain(|model| holds(buffers, model) || !model.is_stale());
    }

    /// Memory that was decided for models that are loaded, each once.
    pub(crate) fn decided_bytes(&self) -> u64 {
        let loaded = self.models.iter().filter(|model| holds(&self.buffers, model));
        loaded.filter_map(|model| model.choice.decision.memory_bytes).sum()
    }

    /// The mapping that holds these bytes.
    pub(crate) fn mapping(&mut self, address: usize, len: usize) -> Option<&Mapping> {
        if !self.mappings.iter().any(|mapping| mapping.holds(address, len)) {
            self.mappings = maps::read();
        }
        self.mappings.iter().find(|mapping| mapping.holds(address, len))
    }
}

/// Whether some buffer holds the experts of `model`.
pub(crate) fn holds(buffers: &HashMap<BufferId, Arc<Model>>, model: &Arc<Model>) -> bool {
    buffers.values().any(|held| Arc::ptr_eq(held, model))
}
