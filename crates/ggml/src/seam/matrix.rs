//! The stacked matrices of a block. Looks at what they are; computes nothing.

use crate::api;
use motley_model::{MAX_LAYERS, Matrix, Role, TensorPart};
use std::ffi::CStr;
use std::marker::PhantomData;

/// One stacked expert tensor `(n_expert, rows, row_bytes)` of a block.
pub struct ExpertMatrix<'b> {
    tensor: *mut api::ggml_tensor,
    block: PhantomData<&'b ()>,
}

impl ExpertMatrix<'_> {
    /// Gate, up, gate_up or down, from the tensor's name; `None` for chunk experts.
    pub fn matrix(&self) -> Option<Matrix> {
        match Role::of(self.name().to_str().ok()?, MAX_LAYERS as u32) {
            Role::Routed { matrix, part: TensorPart::Weight, .. } => Some(matrix),
            _ => None,
        }
    }

    /// The tensor's name in the GGUF.
    pub fn name(&self) -> &CStr {
        // SAFETY: ggml keeps `name` NUL-terminated; the tensor outlives the block.
        unsafe { CStr::from_ptr((*self.tensor).name.as_ptr()) }
    }

    /// Bytes of one expert's matrix.
    pub fn expert_bytes(&self) -> usize {
        // SAFETY: the weight tensor is live as long as the model.
        unsafe { (*self.tensor).nb[2] }
    }

    /// # Safety
    /// `tensor` must be live as long as this.
    pub(super) unsafe fn new(tensor: *mut api::ggml_tensor) -> Self {
        Self { tensor, block: PhantomData }
    }

    pub(crate) fn raw(&self) -> *const api::ggml_tensor {
        self.tensor
    }

    pub(crate) fn tensor_copy(&self) -> api::ggml_tensor {
        // SAFETY: the weight tensor is live as long as the model; a tensor is plain data.
        unsafe { *self.tensor }
    }
}
