//! Qwen2-MoE (`qwen2moe.cpp`): biases on q, k, v; a shared expert behind a sigmoid gate; router
//! weights are not normalised.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    let shared_ff = shape.ff * shape.topk;
    plan.key("feed_forward_length", count(shared_ff));
    plan.key("expert_feed_forward_length", count(shape.ff));
    plan.key("expert_shared_feed_forward_length", count(shared_ff));
    plan.key("rope.freq_base", 1_000_000f32);
    plan.ends();
    for layer in 0..shape.layers {
        plan.norms(layer);
        plan.attention(layer);
        plan.attention_biases(layer);
        plan.experts(layer);
        plan.dense_ffn(layer, "_shexp", shared_ff);
        let gate_std = 1.0 / (shape.hidden as f32).sqrt();
        plan.random(&format!("blk.{layer}.ffn_gate_inp_shexp.weight"), &[shape.hidden], gate_std);
    }
}
