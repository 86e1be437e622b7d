//! How the weights of experts lie in memory, and the memory they lie in. Which layout a tensor
//! gets is the caller's choice; here is what this CPU and build can compute with.
//!
//! Modules, in reading order:
//! * `nodes`: which memory node an expert lies on.
//! * `stack`: the experts of one matrix of one layer in one layout.
//! * `memory`: a model's experts, laid out while it loads.

pub(crate) mod memory;
pub(crate) mod nodes;
pub(crate) mod stack;

use crate::api;
use crate::compute::cpu;
use crate::compute::tensors::{Buffer, Tensors};
use motley_model::gguf::GgmlType;
use std::ffi::CStr;
use std::ptr::null_mut;

/// How the weights of one matrix lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// In the file's own order, as in the slots of an arena.
    Plain,
    /// Rows interleaved for the CPU's vector instructions (ggml's repacking).
    Repacked,
    /// In tiles for the CPU's matrix instructions. ggml computes no `MUL_MAT_ID` with it: every
    /// expert is a tensor of its own.
    Amx,
}

/// One expert's matrix: `rows` rows of `row` elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixShape {
    /// Element type.
    pub ty: GgmlType,
    /// Elements of a row.
    pub row: u32,
    /// Rows.
    pub rows: u32,
}

impl Layout {
    /// Every layout there is, whether or not this CPU has it.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Repacked, Self::Amx];

    /// Those made for a kind of processor, the most special first.
    pub(crate) const SPECIALISED: [Self; 2] = [Self::Amx, Self::Repacked];

    /// Its name in reports and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Repacked => "repacked",
            Self::Amx => "amx",
        }
    }

    /// Whether every expert is a tensor of its own, so that blocks are the only way.
    pub fn is_apart(self) -> bool {
        self == Self::Amx
    }

    /// Bytes of a matrix in this layout; `None` when this CPU and build do not compute with it.
    pub fn bytes(self, shape: &MatrixShape) -> Option<u64> {
        let buffer_type = self.buffer_type()?;
        let tensors = Tensors::new(8)?;
        let weight = tensors.tensor(shape.ty.id(), [shape.row.into(), shape.rows.into(), 1]);
        let stack = tensors.tensor(shape.ty.id(), [shape.row.into(), shape.rows.into(), 2]);
        // SAFETY: the tensors are live until the end of this call.
        unsafe {
            let alone = computes(buffer_type, weight, product(&tensors, weight));
            let together =
                self.is_apart() || computes(buffer_type, stack, product_by_id(&tensors, stack));
            (alone && together)
                .then(|| api::ggml_backend_buft_get_alloc_size(buffer_type, weight) as u64)
        }
    }

    /// Where ggml keeps weights in this layout; `None` when this build has none.
    pub(crate) fn buffer_type(self) -> Option<api::ggml_backend_buffer_type_t> {
        let name = match self {
            // SAFETY: returns a static of ggml's.
            Self::Plain => return Some(unsafe { api::ggml_backend_cpu_buffer_type() }),
            Self::Repacked => c"CPU_REPACK",
            Self::Amx => c"AMX",
        };
        // SAFETY: ggml's buffer types and their names live until the process ends.
        let is_named = |buffer_type: &api::ggml_backend_buffer_type_t| unsafe {
            CStr::from_ptr(api::ggml_backend_buft_name(*buffer_type)) == name
        };
        cpu::extra_buffer_types().into_iter().find(is_named)
    }
}

/// Some rows through one expert.
///
/// # Safety
/// The weight is live, and `tensors` has room for two more.
unsafe fn product(tensors: &Tensors, weight: *mut api::ggml_tensor) -> *mut api::ggml_tensor {
    // SAFETY: by the caller.
    unsafe {
        let input = tensors.tensor(api::GGML_TYPE_F32, [(*weight).ne[0], 2, 1]);
        api::ggml_mul_mat(tensors.raw(), weight, input)
    }
}

/// One row through an expert of a stack.
///
/// # Safety
/// The weight is live, and `tensors` has room for three more.
pub(crate) unsafe fn product_by_id(
    tensors: &Tensors,
    weight: *mut api::ggml_tensor,
) -> *mut api::ggml_tensor {
    // SAFETY: by the caller.
    unsafe {
        let input = tensors.tensor(api::GGML_TYPE_F32, [(*weight).ne[0], 1, 1]);
        let ids = tensors.tensor(api::GGML_TYPE_I32, [1, 1, 1]);
        api::ggml_mul_mat_id(tensors.raw(), weight, input, ids)
    }
}

/// Whether the CPU computes `operation` when its `weight` lies in that kind of buffer, asked as
/// llama.cpp's loader asks: an empty buffer stands for the real one.
///
/// # Safety
/// All are live, and the weight has no buffer yet.
unsafe fn computes(
    buffer_type: api::ggml_backend_buffer_type_t,
    weight: *mut api::ggml_tensor,
    operation: *mut api::ggml_tensor,
) -> bool {
    // SAFETY: by the caller; the weight is as before afterwards.
    unsafe {
        let Some(buffer) = Buffer::new(buffer_type, 0) else { return false };
        (*weight).buffer = buffer.raw();
        let answer = api::ggml_backend_dev_supports_op(cpu::device(), operation);
        (*weight).buffer = null_mut();
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seam::runtime::{Runtime, Seam};

    #[test]
    fn layouts_are_offered_by_type_and_shape() {
        Runtime::start(Seam::Registered).unwrap();
        let shape = |ty, row, rows| MatrixShape { ty, row, rows };
        let plain = Layout::Plain.bytes(&shape(GgmlType::Q4_0, 256, 64));
        assert_eq!(plain, Some(256 / 32 * 18 * 64));
        // Nothing is rearranged in rows of three.
        for layout in [Layout::Repacked, Layout::Amx] {
            assert_eq!(layout.bytes(&shape(GgmlType::Q4_0, 256, 3)), None, "{layout:?}");
            assert_eq!(layout.bytes(&shape(GgmlType::F32, 256, 64)), None, "{layout:?}");
        }
        let built = cpu::built_features();
        let has = |name: &str| built.iter().any(|feature| feature == name);
        let amx = Layout::Amx.bytes(&shape(GgmlType::Q4_0, 256, 64));
        assert_eq!(amx.is_some(), has("AMX_INT8") && Layout::Amx.buffer_type().is_some());
    }
}
