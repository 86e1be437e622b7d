//! Which phase the batch under way belongs to. Whoever makes a batch says so before it runs; the
//! blocks, the prefetcher, the figures and the choice of cores follow. A step in which only
//! decoding streams take part is decode, however many they are; with a prompt's rows among them
//! it is prefill, because those outnumber the others.

use motley_sched::Phase;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The phase, shared by the maker of batches and the executor of their blocks.
#[derive(Debug, Default)]
pub(crate) struct CurrentStep {
    decodes: AtomicBool,
}

impl CurrentStep {
    /// From now on batches belong to `phase`.
    pub(crate) fn set(&self, phase: Phase) {
        self.decodes.store(phase == Phase::Decode, Relaxed);
    }

    pub(crate) fn phase(&self) -> Phase {
        if self.decodes.load(Relaxed) { Phase::Decode } else { Phase::Prefill }
    }
}
