//! Qwen3 (`qwen3.cpp`): Qwen3-MoE with one network in place of experts, and a classifier where it
//! ranks.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    plan.head_keys();
    plan.key("feed_forward_length", count(shape.ff * shape.topk));
    plan.key("rope.freq_base", 1_000_000f32);
    plan.ends();
    plan.classifier();
    for layer in 0..shape.layers {
        plan.norms(layer);
        plan.attention(layer);
        plan.norm(&format!("blk.{layer}.attn_q_norm.weight"), shape.head_dim);
        plan.norm(&format!("blk.{layer}.attn_k_norm.weight"), shape.head_dim);
        plan.dense_ffn(layer, "", shape.ff * shape.topk);
    }
}
