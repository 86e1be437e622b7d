//! The drive loop: takes each routed-expert block from the seam, brings the bytes
//! it lacks and has it computed. Chooses nothing: every missing expert is loaded,
//! and the whole block runs on the CPU.

use crate::residency::Residency;
use crate::routing::{Routed, RoutingWatcher};
use motley_ggml::{BlockError, BlockExecutor, ComputeOutcome, CpuUnit, ExpertBlock};

/// Executor of one session's blocks.
pub(crate) struct Drive {
    /// `None` when llama.cpp holds all expert bytes.
    residency: Option<Residency>,
    watcher: Option<Box<dyn RoutingWatcher>>,
    routed: Routed,
    scratch: Scratch,
}

/// Buffers kept between blocks: a decode step allocates nothing.
#[derive(Default)]
struct Scratch {
    seen: Vec<bool>,
    experts: Vec<u32>,
}

impl Drive {
    pub(crate) fn new(
        residency: Option<Residency>,
        watcher: Option<Box<dyn RoutingWatcher>>,
    ) -> Self {
        Self { residency, watcher, routed: Routed::default(), scratch: Scratch::default() }
    }

    fn on_routed(&mut self, block: &ExpertBlock<'_>) {
        if let Some(watcher) = &mut self.watcher {
            self.routed.refill(block);
            watcher.on_routed(&self.routed);
        }
    }

    fn load_missing(&mut self, block: &mut ExpertBlock<'_>) -> Result<(), BlockError> {
        let Some(residency) = &mut self.residency else { return Ok(()) };
        self.scratch.experts.clear();
        block.distinct_experts(&mut self.scratch.seen, &mut self.scratch.experts);
        for &expert in &self.scratch.experts {
            residency.ensure(block, expert)?;
        }
        Ok(())
    }
}

impl BlockExecutor for Drive {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        self.on_routed(block);
        self.load_missing(block)?;
        Ok(cpu.compute(block))
    }
}
