//! Which operations of a llama.cpp graph belong to a routed-expert block. Reads
//! tensors; computes nothing.
//!
//! The backend scheduler spreads a device's claim to neighbouring nodes the device
//! says it supports, so the claim must be exact. It is structural, not by name: a
//! `MUL_MAT_ID` over expert weights opens a block, and an operation between is
//! claimed only when *all* its inputs descend from such a matmul. The weighted sum
//! (`MUL` with the router's weights, then `ADD`s) therefore stays with llama.cpp.

use crate::api;
use crate::api::numbers::op_of;
use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::Arc;

/// How far a claim looks back through activations; the longest chain in llama.cpp
/// today (scaled tanh gates) has 6 links.
const MAX_LOOK_BACK: u32 = 12;

/// From how many tokens on a context's blocks are claimed. Those of fewer tokens are left to
/// llama.cpp's own CPU backend, without a split of its graph. Experts it cannot compute must be
/// claimed from the first token on.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    /// By layer; what is beyond is claimed.
    from_tokens: Arc<[u32]>,
}

impl Claims {
    /// Every block of every layer.
    pub fn all() -> Self {
        Self::default()
    }

    /// Blocks of at least so many tokens, by layer.
    pub fn from_tokens(by_layer: impl IntoIterator<Item = u32>) -> Self {
        Self { from_tokens: by_layer.into_iter().collect() }
    }

    fn include(&self, layer: u32, tokens: i64) -> bool {
        self.from_tokens.get(layer as usize).is_none_or(|&from| tokens >= i64::from(from))
    }
}

thread_local! {
    /// ggml asks `supports_op` of a device that all contexts share, on the thread that builds the
    /// graph.
    static CLAIMS: RefCell<Claims> = RefCell::default();
}

/// Runs `build` with these claims in force on this thread.
pub(crate) fn with_claims<R>(claims: &Claims, build: impl FnOnce() -> R) -> R {
    let before = CLAIMS.replace(claims.clone());
    let result = build();
    CLAIMS.set(before);
    result
}

/// Whether the claims in force on this thread include the block of `op`, which belongs to one.
///
/// # Safety
/// As [`belongs_to_block`].
pub(crate) unsafe fn is_claimed(op: *const api::ggml_tensor) -> bool {
    // SAFETY: by the caller.
    unsafe {
        let matmul = opening_matmul(op);
        if matmul.is_null() {
            return true;
        }
        let layer = layer_of((*matmul).src[0]);
        layer
            .is_none_or(|layer| CLAIMS.with_borrow(|claims| claims.include(layer, (*matmul).ne[2])))
    }
}

/// The nearest `MUL_MAT_ID` that `op` is, or descends from; null for a weight.
///
/// # Safety
/// As [`belongs_to_block`].
pub(crate) unsafe fn opening_matmul(op: *const api::ggml_tensor) -> *const api::ggml_tensor {
    let mut op = op;
    for _ in 0..=MAX_LOOK_BACK {
        // SAFETY: sources of a live tensor are live.
        unsafe {
            op = producer(op);
            if op.is_null() || op_of((*op).op) == api::GGML_OP_MUL_MAT_ID {
                return op;
            }
            op = (*op).src[0];
        }
    }
    std::ptr::null()
}

/// `blk.7.ffn_up_exps.weight` → 7.
///
/// # Safety
/// `weight` is live.
pub(crate) unsafe fn layer_of(weight: *const api::ggml_tensor) -> Option<u32> {
    // SAFETY: by the caller; ggml's names end with NUL.
    let name = unsafe { CStr::from_ptr((*weight).name.as_ptr()) }.to_str().ok()?;
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// Whether `op` is part of a routed-expert block.
///
/// # Safety
/// `op` and every tensor reachable through its sources must be live, as they are
/// while ggml asks `supports_op`.
pub(crate) unsafe fn belongs_to_block(op: *const api::ggml_tensor) -> bool {
    // SAFETY: the caller vouches for `op` and its sources.
    unsafe {
        match op_of((*op).op) {
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
        op_of(op),
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
        op_of(op),
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
        match op_of((*t).op) {
            api::GGML_OP_MUL_MAT_ID => is_expert_weight((*t).src[0]),
            api::GGML_OP_ADD_ID => descends_from_block((*t).src[0], look_back - 1),
            _ => is_between_op((*t).op) && sources_descend(t, look_back - 1),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::tensors::Tensors;

    #[test]
    fn blocks_of_few_tokens_are_left_to_the_engine() {
        let tensors = Tensors::new(32).unwrap();
        let stack = tensors.tensor(api::GGML_TYPE_F32, [32, 8, 4]);
        let claimed = |tokens: i64| {
            let hidden = tensors.tensor(api::GGML_TYPE_F32, [32, 1, tokens]);
            let ids = tensors.tensor(api::GGML_TYPE_I32, [2, tokens, 1]);
            // SAFETY: the tensors are live until the end of the test; names fit.
            unsafe {
                api::ggml_set_name(stack, c"blk.1.ffn_up_exps.weight".as_ptr());
                is_claimed(api::ggml_mul_mat_id(tensors.raw(), stack, hidden, ids))
            }
        };
        assert!(claimed(1), "everything, where nobody said otherwise");
        with_claims(&Claims::from_tokens([1, 8]), || {
            assert!(!claimed(7) && claimed(8), "of layer 1");
            with_claims(&Claims::from_tokens([8]), || assert!(claimed(7), "a layer beyond"));
            assert!(!claimed(7), "what was in force before is again");
        });
        assert!(claimed(7));
    }
}
