//! A small F32 matrix times the hidden rows of a block, on the block's own CPU unit:
//! what router scores (H3) and guesses about coming layers (H2) are made of.

use super::graph::Graph;
use super::outcome::ComputeOutcome;
use super::stream::CpuStream;
use crate::api;
use crate::api::numbers::op_there;
use crate::seam::block::ExpertBlock;

/// A matrix of `rows` contiguous rows, each as wide as the hidden rows.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// `[rows][width]`.
    pub weights: &'a [f32],
    /// Floats per row.
    pub width: usize,
}

/// Why a projection could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProjectError {
    /// The matrix is not as wide as the hidden rows, or not whole rows.
    #[error("a matrix of {floats} floats in rows of {width} does not fit hidden rows of {hidden}")]
    Width {
        /// Floats given.
        floats: usize,
        /// Floats per row.
        width: usize,
        /// Floats of a hidden row.
        hidden: usize,
    },
    /// ggml did not finish it.
    #[error("ggml did not finish a projection")]
    NotDone,
}

/// Scratch of one CPU unit.
#[derive(Default)]
pub(crate) struct Projection {
    graph: Option<Graph>,
}

// SAFETY: the graph's node is set anew in every call and not used after it.
unsafe impl Send for Projection {}

impl Projection {
    /// `matrix` times the hidden row of every token, into `out`: `[tokens][rows]`.
    pub(super) fn run(
        &mut self,
        cpu: &mut CpuStream,
        block: &ExpertBlock<'_>,
        matrix: Rows<'_>,
        out: &mut Vec<f32>,
    ) -> Result<(), ProjectError> {
        let Rows { weights, width } = matrix;
        let hidden = block.hidden_width();
        if width != hidden || width == 0 || weights.len() % width != 0 {
            return Err(ProjectError::Width { floats: weights.len(), width, hidden });
        }
        let (rows, tokens) = (weights.len() / width, block.tokens());
        out.clear();
        out.resize(rows * tokens, 0.0);
        let mut left = matrix_tensor(weights.as_ptr().cast_mut(), width, rows);
        let mut right = block.hidden_rows();
        let mut product = matrix_tensor(out.as_mut_ptr(), rows, tokens);
        product.op = op_there(api::GGML_OP_MUL_MAT);
        product.flags = api::GGML_TENSOR_FLAG_COMPUTE as i32;
        product.src[0] = &mut left;
        product.src[1] = &mut right;
        let graph = self.graph.get_or_insert_with(Graph::new);
        let tensors = std::slice::from_mut(&mut product);
        graph.refill(tensors);
        let raw = graph.raw();
        // SAFETY: the three tensors and the memory they point at live until the end of
        // this call; ggml only reads the left one, which is borrowed shared.
        match unsafe { cpu.compute(raw) } {
            ComputeOutcome::Done => Ok(()),
            ComputeOutcome::Aborted | ComputeOutcome::Failed => Err(ProjectError::NotDone),
        }
    }
}

/// F32 `[width, rows]` at `data`.
fn matrix_tensor(data: *mut f32, width: usize, rows: usize) -> api::ggml_tensor {
    // SAFETY: all-zero is a valid tensor: no sources, no buffer, operation NONE.
    let mut tensor: api::ggml_tensor = unsafe { std::mem::zeroed() };
    tensor.type_ = api::GGML_TYPE_F32;
    let row = width * size_of::<f32>();
    tensor.ne = [width as i64, rows as i64, 1, 1];
    tensor.nb = [size_of::<f32>(), row, row * rows, row * rows];
    tensor.data = data.cast();
    tensor
}
