//! Phi-3.5-MoE (`phimoe.cpp`, graph of `phi3.cpp`): biases on norms, attention and output.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape, vocab: u64) {
    plan.key("feed_forward_length", count(shape.ff));
    plan.key("rope.dimension_count", count(shape.head_dim));
    plan.key("rope.freq_base", 10_000f32);
    plan.ends();
    plan.bias("output_norm.bias", &[shape.hidden]);
    plan.bias("output.bias", &[vocab]);
    for layer in 0..shape.layers {
        plan.norms(layer);
        plan.bias(&format!("blk.{layer}.attn_norm.bias"), &[shape.hidden]);
        plan.bias(&format!("blk.{layer}.ffn_norm.bias"), &[shape.hidden]);
        plan.attention(layer);
        plan.attention_biases(layer);
        plan.bias(&format!("blk.{layer}.attn_output.bias"), &[shape.hidden]);
        plan.experts(layer);
    }
}
