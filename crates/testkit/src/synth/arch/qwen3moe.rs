//! Qwen3-MoE (`qwen3moe.cpp`): heads of their own width with norms, softmax router, normalised.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    plan.head_keys();
    plan.key("feed_forward_length", count(shape.ff * shape.topk));
    plan.key("expert_feed_forward_length", count(shape.ff));
    plan.key("rope.freq_base", 1_000_000f32);
    plan.ends();
    for layer in 0..shape.layers {
        plan.norms(layer);
        plan.attention(layer);
        plan.norm(&format!("blk.{layer}.attn_q_norm.weight"), shape.head_dim);
        plan.norm(&format!("blk.{layer}.attn_k_norm.weight"), shape.head_dim);
        plan.experts(layer);
    }
}
