//! MiniMax-M2 (`minimax-m2.cpp`): norms over all queries and all keys at once, positions on half of
//! a head, a sigmoid router with bias.

use crate::synth::Shape;
use crate::synth::plan::{GATING_SIGMOID, Plan, count};

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    plan.head_keys();
    plan.key("rope.dimension_count", count(shape.head_dim / 2));
    plan.key("rope.freq_base", 5_000_000f32);
    plan.key("feed_forward_length", count(shape.ff));
    plan.key("expert_feed_forward_length", count(shape.ff));
    plan.key("expert_gating_func", GATING_SIGMOID);
    plan.ends();
    let (q, kv) = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim);
    for layer in 0..shape.layers {
        plan.norms(layer);
        plan.attention(layer);
        plan.norm(&format!("blk.{layer}.attn_q_norm.weight"), q);
        plan.norm(&format!("blk.{layer}.attn_k_norm.weight"), kv);
        plan.experts(layer);
        plan.random(&format!("blk.{layer}.exp_probs_b.bias"), &[shape.experts], 0.1);
    }
}
