//! What stands between the matmuls of a block, named: for units that do not run ggml's
//! own operations. Whatever is not one of the forms here is refused, never guessed.

use crate::api;
use crate::api::numbers::op_of;
use crate::seam::block::ExpertBlock;
use crate::seam::claim::{is_view_op, producer};
use motley_model::Matrix;
use std::ffi::CStr;

/// How gate and up become one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gated {
    /// `silu(gate) · up`.
    SwiGlu,
    /// With `g = min(gate, limit)` and `u = clamp(up, ±limit)`:
    /// `g · sigmoid(alpha · g) · (u + 1)`.
    SwiGluClamped {
        /// Slope of the sigmoid.
        alpha: f32,
        /// Where values are cut.
        limit: f32,
    },
}

/// A block's formula: `down(gated(gate(x), up(x)))`, each with its bias or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Formula {
    /// What stands between the entry matmuls and down.
    pub gated: Gated,
    /// Whether every matmul adds a bias per expert.
    pub biased: bool,
}

/// Why a block has no formula here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFormula {
    /// An operation that is not one of those above.
    #[error("the experts use {0}")]
    Operation(String),
    /// Some matrices have biases and some do not, or operations come in an unknown order.
    #[error("the experts' operations come in an unknown order")]
    Order,
}

impl ExpertBlock<'_> {
    /// Names what this block computes, or the operation that has no name here.
    pub fn formula(&self) -> Result<Formula, NoFormula> {
        let mut gated = None;
        let mut biases = 0;
        for node in self.nodes() {
            // SAFETY: nodes of a block are live for the block's life.
            let op = unsafe { (*node).op };
            match op_of(op) {
                api::GGML_OP_MUL_MAT_ID => {}
                api::GGML_OP_ADD_ID => biases += 1,
                api::GGML_OP_GLU if gated.is_none() => gated = Some(self.gated(node)?),
                _ if is_view_op(op) => {}
                _ => return Err(NoFormula::Operation(described(node))),
            }
        }
        let matrices = self.matrices().count();
        match gated {
            Some(gated) if biases == 0 || biases == matrices => {
                Ok(Formula { gated, biased: biases > 0 })
            }
            _ => Err(NoFormula::Order),
        }
    }

    fn gated(&self, node: *const api::ggml_tensor) -> Result<Gated, NoFormula> {
        // SAFETY: `node` is a live GLU of this block, its sources are live as well, and
        // `op_params` holds the operation, `swapped`, alpha and limit in this order.
        unsafe {
            let [gate, up] = [(*node).src[0], (*node).src[1]];
            if up.is_null() || (*node).op_params[1] != 0 || !self.in_order(gate, up) {
                return Err(NoFormula::Order);
            }
            let float = |index: usize| f32::from_bits((*node).op_params[index] as u32);
            match api::ggml_get_glu_op(node) {
                api::GGML_GLU_OP_SWIGLU => Ok(Gated::SwiGlu),
                api::GGML_GLU_OP_SWIGLU_OAI => {
                    Ok(Gated::SwiGluClamped { alpha: float(2), limit: float(3) })
                }
                _ => Err(NoFormula::Operation(described(node))),
            }
        }
    }

    /// Whether these are gate and up: two products, or the first and second half of one.
    ///
    /// # Safety
    /// Both must be live.
    unsafe fn in_order(&self, gate: *const api::ggml_tensor, up: *const api::ggml_tensor) -> bool {
        // SAFETY: by the caller; sources of live tensors are live.
        unsafe {
            match (self.origin(gate), self.origin(up)) {
                (Some(Matrix::Gate), Some(Matrix::Up)) => true,
                (Some(Matrix::GateUp), Some(Matrix::GateUp)) => {
                    (*gate).view_offs == 0
                        && (*up).view_offs == (*gate).nb[0] * (*gate).ne[0] as usize
                }
                _ => false,
            }
        }
    }

    /// The matrix whose product, with a bias or without, `tensor` is.
    ///
    /// # Safety
    /// `tensor` must be live.
    unsafe fn origin(&self, tensor: *const api::ggml_tensor) -> Option<Matrix> {
        // SAFETY: by the caller; sources of live tensors are live.
        let product = unsafe {
            let result = producer(tensor);
            if op_of((*result).op) == api::GGML_OP_ADD_ID {
                producer((*result).src[0])
            } else {
                result
            }
        };
        self.matrices().nth(self.matmul_index(product)?)?.matrix()
    }
}

fn described(node: *const api::ggml_tensor) -> String {
    // SAFETY: the node is live (caller), the description is a static string.
    unsafe { CStr::from_ptr(api::ggml_op_desc(node)) }.to_string_lossy().into_owned()
}
