//! Granite 3 MoE (`granite-moe.cpp`): the llama tensors and four multipliers.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

const EMBEDDING_SCALE: f32 = 12.0;

/// Keys and tensors. The multipliers are those of granite-3.0-1b-a400m.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    plan.head_keys();
    plan.key("feed_forward_length", count(shape.ff));
    plan.key("rope.freq_base", 10_000f32);
    plan.key("embedding_scale", EMBEDDING_SCALE);
    plan.key("residual_scale", 0.22f32);
    plan.key("attention.scale", 1.0 / shape.head_dim as f32);
    plan.key("logit_scale", 6f32);
    plan.ends_scaled(EMBEDDING_SCALE);
    for layer in 0..shape.layers {
        plan.norms(layer);
        plan.attention(layer);
        plan.experts(layer);
    }
}
