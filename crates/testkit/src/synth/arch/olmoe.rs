//! OLMoE (`olmoe.cpp`): norms over all queries and all keys at once; weights not normalised.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    plan.key("feed_forward_length", count(shape.ff));
    plan.key("rope.freq_base", 10_000f32);
    plan.ends();
    for layer in 0..shape.layers {
        plan.norms(layer);
        plan.attention(layer);
        plan.norm(&format!("blk.{layer}.attn_q_norm.weight"), shape.hidden);
        plan.norm(&format!("blk.{layer}.attn_k_norm.weight"), shape.hidden);
        plan.experts(layer);
    }
}
