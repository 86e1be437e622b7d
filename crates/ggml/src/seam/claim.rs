//! Which operations of a llama.cpp graph belong to a routed-expert block. Reads
//! tensors; computes nothing.
//!
//! The backend scheduler spreads a device's claim to neighbouring nodes the device
//! says it supports, so the claim must be exact. It is structural, not by name: a
//! `MUL_MAT_ID` over expert weights opens a block, and an operation between is
//! claimed only when *all* its inputs descend from such a matmul. The weighted sum
//! (`MUL` with the router's weights, then `ADD`s) therefore stays with llama.cpp.

use crate::api;
use std::ffi::CStr;

/// How far a claim looks back through activations; the longest chain in llama.cpp
/// today (scaled tanh gates) has 6 links.
const MAX_LOOK_BACK: u32 = 12;

/// Whether `op` is part of a routed-expert block.
///
/// # Safety
/// `op` and every tensor reachable through its sources must be live, as they are
/// while ggml asks `supports_op`.
pub(crate) unsafe fn belongs_to_block(op: *const api::ggml_tensor) -> bool {
    // SAFETY: the caller vouches for `op` and its sources.
    unsafe {
        match (*op).op {
            // A weight itself: the scheduler asks who may hold it.
            api::GGML_OP_NONE => is_expert_weight(op),
            api::GGML_OP_MUL_MAT_ID => is_expert_weight((*op).src[0]),
            api::GGML_OP_ADD_ID => descends_from_block((*op).src[0], MAX_LOOK_BACK),
            _ => is_between_op((*op).op) && sources_descend(op, MAX_LOOK_BACK),
        }
    }
}

/// Strips views and reshapes: the tensor whose computation produced `t`'s bytes.
///
/// # Safety
/// As [`belongs_to_block`].
pub(crate) unsafe fn producer(mut t: *const api::ggml_tensor) -> *const api::ggml_tensor {
    // SAFETY: view sources are live as long as the view is.
    unsafe {
        while !t.is_null() && is_view_op((*t).op) && !(*t).view_src.is_null() {
            t = (*t).view_src;
        }
    }
    t
}

/// Operations that only rename memory.
pub(crate) fn is_view_op(op: api::ggml_op) -> bool {
    matches!(
        op,
        api::GGML_OP_VIEW
            | api::GGML_OP_RESHAPE
            | api::GGML_OP_PERMUTE
            | api::GGML_OP_TRANSPOSE
            | api::GGML_OP_NONE
    )
}

/// Element-wise operations that may stand between the matmuls of one expert.
fn is_between_op(op: api::ggml_op) -> bool {
    matches!(
        op,
        api::GGML_OP_GLU
            | api::GGML_OP_UNARY
            | api::GGML_OP_CLAMP
            | api::GGML_OP_MUL
            | api::GGML_OP_SCALE
            | api::GGML_OP_SQR
    )
}

unsafe fn descends_from_block(t: *const api::ggml_tensor, look_back: u32) -> bool {
    if look_back == 0 {
        return false;
    }
    // SAFETY: sources of a live tensor are live.
    unsafe {
        let t = producer(t);
        if t.is_null() {
            return false;
        }
        match (*t).op {
            api::GGML_OP_MUL_MAT_ID => is_expert_weight((*t).src[0]),
            api::GGML_OP_ADD_ID => descends_from_block((*t).src[0], look_back - 1),
            op => is_between_op(op) && sources_descend(t, look_back - 1),
        }
    }
}

unsafe fn sources_descend(t: *const api::ggml_tensor, look_back: u32) -> bool {
    // SAFETY: `t` is live, its `src` array is inline.
    let sources = unsafe { &(*t).src };
    let mut found = false;
    for &source in sources.iter().filter(|s| !s.is_null()) {
        // SAFETY: sources of a live tensor are live.
        if !unsafe { descends_from_block(source, look_back) } {
            return false;
        }
        found = true;
    }
    found
}

/// Stacked expert matrices are called `blk.N.ffn_{gate,up,down,gate_up}_exps.weight`
/// (`_chexps` for chunked experts); adapters and their low-rank parts are not.
unsafe fn is_expert_weight(t: *const api::ggml_tensor) -> bool {
    if t.is_null() {
        return false;
    }
    // SAFETY: ggml keeps `name` NUL-terminated inside its 64 bytes.
    let name = unsafe { CStr::from_ptr((*t).name.as_ptr()) };
    name.to_bytes().ends_with(b"exps.weight")
}
