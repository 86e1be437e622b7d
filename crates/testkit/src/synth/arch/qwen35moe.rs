//! Qwen3.5-MoE (`qwen35moe.cpp`): most layers are a gated delta net, which keeps a state of fixed
//! size; every fourth is attention behind a gate, with a norm on heads and rope in sections. All
//! have experts and a shared one behind a gate.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Tokens that the convolution before the delta net sees.
const CONV_KERNEL: u64 = 4;

/// Logarithm of what a state keeps per token, before its gate.
const DECAY: f32 = -0.5;

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    keys(plan, shape);
    plan.ends();
    for layer in 0..shape.layers {
        plan.norm(&format!("blk.{layer}.attn_norm.weight"), shape.hidden);
        plan.norm(&format!("blk.{layer}.post_attention_norm.weight"), shape.hidden);
        if (layer + 1).is_multiple_of(attention_interval(shape)) {
            attention(plan, shape, layer);
        } else {
            delta_net(plan, shape, layer);
        }
        plan.experts(layer);
        plan.dense_ffn(layer, "_shexp", shape.ff);
        let gate_std = 1.0 / (shape.hidden as f32).sqrt();
        plan.random(&format!("blk.{layer}.ffn_gate_inp_shexp.weight"), &[shape.hidden], gate_std);
    }
}

/// One layer of this many is attention: four as published, fewer if the model has not as many.
fn attention_interval(shape: &Shape) -> u64 {
    shape.layers.min(4)
}

fn keys(plan: &mut Plan, shape: &Shape) {
    plan.head_keys();
    // A quarter of a head has a position, divided into time, height and width.
    let pairs = count(shape.head_dim / 8);
    let time = pairs.div_ceil(3);
    let height = (pairs - time).div_ceil(2);
    plan.key("rope.dimension_count", 2 * pairs);
    plan.key("rope.dimension_sections", vec![time, height, pairs - time - height, 0]);
    plan.key("rope.freq_base", 10_000_000f32);
    plan.key("expert_feed_forward_length", count(shape.ff));
    plan.key("expert_shared_feed_forward_length", count(shape.ff));
    plan.key("full_attention_interval", count(attention_interval(shape)));
    plan.key("ssm.conv_kernel", count(CONV_KERNEL));
    plan.key("ssm.inner_size", count(shape.heads * shape.head_dim));
    plan.key("ssm.state_size", count(shape.head_dim));
    plan.key("ssm.time_step_rank", count(shape.heads));
    plan.key("ssm.group_count", count(shape.kv_heads));
}

/// Queries come with a gate of the same width.
fn attention(plan: &mut Plan, shape: &Shape, layer: u64) {
    let Shape { hidden, heads, kv_heads, head_dim, .. } = *shape;
    let name = |part: &str| format!("blk.{layer}.attn_{part}.weight");
    plan.matrix(&name("q"), &[hidden, 2 * heads * head_dim]);
    plan.matrix(&name("k"), &[hidden, kv_heads * head_dim]);
    plan.matrix(&name("v"), &[hidden, kv_heads * head_dim]);
    plan.norm(&name("q_norm"), head_dim);
    plan.norm(&name("k_norm"), head_dim);
    plan.attention_output(layer, heads * head_dim);
}

/// Heads are as in attention: values have as many as queries there.
fn delta_net(plan: &mut Plan, shape: &Shape, layer: u64) {
    let Shape { hidden, heads, kv_heads, head_dim, .. } = *shape;
    let name = |part: &str| format!("blk.{layer}.{part}");
    let values = heads * head_dim;
    let mixed = 2 * kv_heads * head_dim + values;
    plan.matrix(&name("attn_qkv.weight"), &[hidden, mixed]);
    plan.matrix(&name("attn_gate.weight"), &[hidden, values]);
    plan.random(&name("ssm_conv1d.weight"), &[CONV_KERNEL, mixed], 0.5);
    plan.bias(&name("ssm_dt.bias"), &[heads]);
    plan.constant(&name("ssm_a"), &[heads], DECAY);
    plan.matrix(&name("ssm_beta.weight"), &[hidden, heads]);
    plan.matrix(&name("ssm_alpha.weight"), &[hidden, heads]);
    plan.norm(&name("ssm_norm.weight"), head_dim);
    plan.residual_output(&name("ssm_out.weight"), values);
}
