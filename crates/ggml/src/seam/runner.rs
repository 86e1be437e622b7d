//! Receives the splits of one context's graphs, makes blocks of them and hands these to the
//! context's executor. Decides nothing; knows nothing of the tables by which ggml called.

use super::block::{ExpertBlock, NotABlock};
use super::executor::{BlockError, BlockExecutor};
use super::link::BackendLink;
use super::reserve;
use crate::api;
use crate::compute::unit::CpuUnit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What stands behind one stream of the device.
pub(crate) struct BlockRunner {
    executor: Box<dyn BlockExecutor>,
    cpu: CpuUnit,
    link: Arc<BackendLink>,
    /// Inputs of the block under way, where its output would be written over them.
    kept: [Vec<u8>; 2],
}

impl BlockRunner {
    pub(crate) fn new(
        executor: Box<dyn BlockExecutor>,
        cpu: CpuUnit,
        link: Arc<BackendLink>,
    ) -> Self {
        Self { executor, cpu, link, kept: Default::default() }
    }

    /// The CPU it computes on.
    pub(crate) fn cpu(&mut self) -> &mut CpuUnit {
        &mut self.cpu
    }

    /// Computes a split; a panic ends as a failure.
    ///
    /// # Safety
    /// The graph and all its tensors are live and nobody else touches them.
    pub(crate) unsafe fn compute(&mut self, graph: *mut api::ggml_cgraph) -> api::ggml_status {
        let run = AssertUnwindSafe(|| {
            // SAFETY: by the caller.
            match unsafe { ExpertBlock::parse(graph) } {
                Ok(mut block) => self.run_block(&mut block),
                // SAFETY: as above.
                Err(reason) => unsafe { self.delegate(graph, reason) },
            }
        });
        catch_unwind(run).unwrap_or(api::GGML_STATUS_FAILED)
    }

    fn run_block(&mut self, block: &mut ExpertBlock<'_>) -> api::ggml_status {
        block.secure_inputs(&mut self.kept);
        self.link.count_block(block.output_rows() as u64);
        let outcome = self.executor.execute(block, &mut self.cpu);
        let unread = self.cpu.take_unread();
        match outcome {
            Ok(_) if unread => {
                let reason = "its experts were left on disk and nobody read them".into();
                self.link.set_error(BlockError { layer: block.layer(), reason });
                api::GGML_STATUS_FAILED
            }
            Ok(outcome) => outcome.status(),
            Err(error) => {
                self.link.set_error(error);
                api::GGML_STATUS_FAILED
            }
        }
    }

    /// # Safety
    /// The graph is live.
    unsafe fn delegate(
        &mut self,
        graph: *mut api::ggml_cgraph,
        reason: NotABlock,
    ) -> api::ggml_status {
        self.link.count_delegated(reason);
        // SAFETY: by the caller.
        unsafe {
            if reads_reserved_weights(graph) {
                let reason = format!(
                    "unknown expert block ({reason}); load with --loading mapped (inside another program: MOTLEY_OFF=1)"
                );
                self.link.set_error(BlockError { layer: 0, reason });
                return api::GGML_STATUS_FAILED;
            }
            self.cpu.compute_graph(graph).status()
        }
    }
}

/// A split that is no block has no executor to fill reserved weights for it.
///
/// # Safety
/// The graph is live.
unsafe fn reads_reserved_weights(graph: *mut api::ggml_cgraph) -> bool {
    // SAFETY: by the caller, and so are its nodes and their sources.
    unsafe {
        (0..api::ggml_graph_n_nodes(graph)).any(|index| {
            let node = api::ggml_graph_node(graph, index);
            let weight = (*node).src[0];
            !weight.is_null() && reserve::owns((*weight).buffer)
        })
    }
}
