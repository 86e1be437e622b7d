//! The CPU as a unit that computes blocks: whole, some experts from slots, some rows, and a
//! small matrix beside them. Which of these a block wants is the executor's business.

use super::blocks::{BlockWork, Blocks, Way};
use super::outcome::ComputeOutcome;
use super::project::{ProjectError, Projection, Rows};
use super::stream::CpuStream;
use super::subset::{Subset, SubsetError};
use crate::api;
use crate::seam::block::ExpertBlock;
use motley_store::FilledExpert;

/// ggml's CPU backend on the context's shared thread pool.
pub struct CpuUnit {
    stream: CpuStream,
    subset: Subset,
    blocks: Blocks,
    projection: Projection,
    /// Somebody wanted experts computed that nobody read.
    unread: bool,
}

impl CpuUnit {
    pub(crate) fn new(stream: CpuStream) -> Self {
        Self {
            stream,
            subset: Subset::default(),
            blocks: Blocks::default(),
            projection: Projection::default(),
            unread: false,
        }
    }

    /// Computes every row of `block` that is not set aside with the weights it came with. Fails, and with it the decode,
    /// when the block's experts were left on disk. Experts that are apart are computed in blocks,
    /// whatever the way.
    pub fn compute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        way: Way,
    ) -> Result<ComputeOutcome, SubsetError> {
        if self.refuses(block) {
            return Ok(ComputeOutcome::Failed);
        }
        if way == Way::Whole && !block.is_apart() {
            if block.has_aside() {
                let rows: Vec<_> = block.rows().map(|(token, slot, _)| (token, slot)).collect();
                return self.subset.run_rows(&mut self.stream, block, &rows);
            }
            // SAFETY: the graph of a block is live for the block's life.
            return Ok(unsafe { self.stream.compute(block.graph()) });
        }
        self.blocks.run(&mut self.stream, block, way.cut())
    }

    /// Computes the rows of `block` that belong to `experts` and are not set aside; other rows are
    /// left as they are. Each expert's bytes are held for the call by its leases.
    pub fn compute_with(
        &mut self,
        block: &mut ExpertBlock<'_>,
        experts: &[(u32, &FilledExpert)],
        way: Way,
    ) -> Result<ComputeOutcome, SubsetError> {
        match way {
            Way::Whole => self.subset.run_experts(&mut self.stream, block, experts),
            Way::Blocks(cut) => self.blocks.run_experts(&mut self.stream, block, experts, cut),
        }
    }

    /// Computes these rows, (token, slot) each, with the weights the block came with;
    /// other rows are left as they are. As [`CpuUnit::compute`] for experts left on disk or apart.
    pub fn compute_rows(
        &mut self,
        block: &mut ExpertBlock<'_>,
        rows: &[(usize, usize)],
        way: Way,
    ) -> Result<ComputeOutcome, SubsetError> {
        if rows.len() == block.tokens() * block.slots() {
            return self.compute(block, way);
        }
        if self.refuses(block) {
            return Ok(ComputeOutcome::Failed);
        }
        if way == Way::Whole && !block.is_apart() {
            return self.subset.run_rows(&mut self.stream, block, rows);
        }
        self.blocks.run_rows(&mut self.stream, block, rows, way.cut())
    }

    /// What threads did in blocks of one expert since the last call.
    pub fn take_work(&mut self) -> BlockWork {
        self.blocks.take_work()
    }

    /// `matrix` times the hidden row of every token, into `out`: `[tokens][rows]`.
    pub fn project(
        &mut self,
        block: &ExpertBlock<'_>,
        matrix: Rows<'_>,
        out: &mut Vec<f32>,
    ) -> Result<(), ProjectError> {
        self.projection.run(&mut self.stream, block, matrix, out)
    }

    /// Threads it computes with.
    pub fn threads(&self) -> usize {
        self.stream.threads()
    }

    /// Computes a graph that is not a block.
    ///
    /// # Safety
    /// The graph's tensors and all they point at must be live.
    pub(crate) unsafe fn compute_graph(&mut self, graph: *mut api::ggml_cgraph) -> ComputeOutcome {
        // SAFETY: by the caller.
        unsafe { self.stream.compute(graph) }
    }

    /// Whether experts that nobody read were to be computed since the last call.
    pub(crate) fn take_unread(&mut self) -> bool {
        std::mem::take(&mut self.unread)
    }

    fn refuses(&mut self, block: &ExpertBlock<'_>) -> bool {
        let unread = block.is_unread();
        self.unread |= unread;
        unread
    }

    pub(crate) fn stream_mut(&mut self) -> &mut CpuStream {
        &mut self.stream
    }
}
