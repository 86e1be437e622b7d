//! The CPU as a unit that computes blocks: whole, some experts from slots, some rows, and a
//! small matrix beside them. Which of these a block wants is the executor's business.

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
    projection: Projection,
}

impl CpuUnit {
    pub(crate) fn new(stream: CpuStream) -> Self {
        Self { stream, subset: Subset::default(), projection: Projection::default() }
    }

    /// Computes every operation of `block` as llama.cpp built it.
    pub fn compute(&mut self, block: &mut ExpertBlock<'_>) -> ComputeOutcome {
        // SAFETY: the graph of a block is live for the block's life.
        unsafe { self.stream.compute(block.graph()) }
    }

    /// Computes the rows of `block` that belong to `experts`; other rows are left
    /// as they are. Each expert's bytes are held for the call by its leases.
    pub fn compute_with(
        &mut self,
        block: &mut ExpertBlock<'_>,
        experts: &[(u32, &FilledExpert)],
    ) -> Result<ComputeOutcome, SubsetError> {
        self.subset.run_experts(&mut self.stream, block, experts)
    }

    /// Computes these rows, (token, slot) each, with the weights the block came with;
    /// other rows are left as they are.
    pub fn compute_rows(
        &mut self,
        block: &mut ExpertBlock<'_>,
        rows: &[(usize, usize)],
    ) -> Result<ComputeOutcome, SubsetError> {
        if rows.len() == block.tokens() * block.slots() {
            return Ok(self.compute(block));
        }
        self.subset.run_rows(&mut self.stream, block, rows)
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

    /// Computes a graph that is not a block.
    ///
    /// # Safety
    /// The graph's tensors and all they point at must be live.
    pub(crate) unsafe fn compute_graph(&mut self, graph: *mut api::ggml_cgraph) -> ComputeOutcome {
        // SAFETY: by the caller.
        unsafe { self.stream.compute(graph) }
    }

    pub(crate) fn stream_mut(&mut self) -> &mut CpuStream {
        &mut self.stream
    }
}
