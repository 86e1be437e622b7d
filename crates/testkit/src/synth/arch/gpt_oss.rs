//! gpt-oss (`openai-moe.cpp`): biases everywhere, attention sinks, every other layer with a
//! sliding window, router softmax after the choice; the clamped SwiGLU is in llama.cpp's graph.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Keys and tensors; rope scaling and window are those of gpt-oss-20b.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    plan.head_keys();
    plan.key("feed_forward_length", count(shape.ff));
    plan.key("expert_feed_forward_length", count(shape.ff));
    plan.key("attention.sliding_window", 128u32);
    plan.key("rope.freq_base", 150_000f32);
    plan.key("rope.scaling.type", "yarn");
    plan.key("rope.scaling.factor", 32f32);
    plan.key("rope.scaling.original_context_length", 4096u32);
    plan.ends();
    for layer in 0..shape.layers {
        plan.norm(&format!("blk.{layer}.attn_norm.weight"), shape.hidden);
        plan.norm(&format!("blk.{layer}.post_attention_norm.weight"), shape.hidden);
        plan.attention(layer);
        plan.attention_biases(layer);
        plan.bias(&format!("blk.{layer}.attn_output.bias"), &[shape.hidden]);
        plan.random(&format!("blk.{layer}.attn_sinks.weight"), &[shape.heads], 1.0);
        plan.experts(layer);
        plan.bias(&format!("blk.{layer}.ffn_gate_inp.bias"), &[shape.experts]);
        plan.bias(&format!("blk.{layer}.ffn_gate_exps.bias"), &[shape.ff, shape.experts]);
        plan.bias(&format!("blk.{layer}.ffn_up_exps.bias"), &[shape.ff, shape.experts]);
        plan.bias(&format!("blk.{layer}.ffn_down_exps.bias"), &[shape.hidden, shape.experts]);
    }
}
