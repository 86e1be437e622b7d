//! Why rows do not go through a device.

use crate::compute::clone::CloneError;
use motley_model::{Matrix, TensorPart};

/// Why a unit does not take rows; the CPU can.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A slot is another unit's, or holds an expert of another shape.
    #[error("a slot does not hold an expert of this layer")]
    Slot,
    /// The slot has no such part.
    #[error("slots have no {part:?} of {matrix:?}")]
    Part {
        /// Which of the expert's.
        matrix: Matrix,
        /// What of it: weights, a bias or a scale.
        part: TensorPart,
    },
    /// A weight of the block is none of gate, up, gate_up and down.
    #[error("the block has a weight that is not a routed expert's")]
    UnknownMatrix,
    /// The device lacks an operation of the block.
    #[error("{device} does not compute {operation}")]
    Operation {
        /// ggml's name of it (`CUDA0`).
        device: String,
        /// ggml's name of the operation.
        operation: String,
    },
    /// One row needs more than the workspace.
    #[error("a row needs {row_bytes} bytes, more than the workspace of {workspace_bytes}")]
    Workspace {
        /// One row in all operations together.
        row_bytes: usize,
        /// What the unit's budget left for it.
        workspace_bytes: usize,
    },
    /// The operations cannot be cloned.
    #[error(transparent)]
    Clone(#[from] CloneError),
}
