//! Granite 4 hybrid (`granite-hybrid.cpp`): most layers are Mamba2 in place of attention, some are
//! attention without positions. All have experts and a shared one; the multipliers of Granite 3.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

const EMBEDDING_SCALE: f32 = 12.0;

/// Tokens that the convolution before the state sees.
const CONV_KERNEL: u64 = 4;

/// Width of a state and of one of its heads.
const STATE: u64 = 128;
const STATE_HEAD: u64 = 64;

/// Logarithm of what a state keeps in one unit of time.
const DECAY: f32 = -0.5;

/// Keys and tensors. The multipliers are those of granite-4.0-h-tiny.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    keys(plan, shape);
    plan.ends_scaled(EMBEDDING_SCALE);
    for layer in 0..shape.layers {
        plan.norms(layer);
        if is_attention(shape, layer) {
            plan.attention(layer);
        } else {
            mamba(plan, shape, layer);
        }
        plan.experts(layer);
        plan.dense_ffn(layer, "_shexp", 2 * shape.ff);
    }
}

/// One layer of ten is attention, as published, but at least one.
fn is_attention(shape: &Shape, layer: u64) -> bool {
    (layer + 1).is_multiple_of(shape.layers.min(10))
}

/// Width of a Mamba2 layer; llama.cpp takes no other.
fn inner(shape: &Shape) -> u64 {
    2 * shape.hidden
}

fn keys(plan: &mut Plan, shape: &Shape) {
    plan.head_keys();
    let kv_heads = |layer| if is_attention(shape, layer) { count(shape.kv_heads) } else { 0 };
    plan.key("attention.head_count_kv", (0..shape.layers).map(kv_heads).collect::<Vec<u32>>());
    plan.key("attention.scale", 1.0 / shape.head_dim as f32);
    // llama.cpp takes this as the switch for positions.
    plan.key("rope.scaling.finetuned", false);
    plan.key("feed_forward_length", count(shape.ff));
    plan.key("expert_shared_feed_forward_length", count(2 * shape.ff));
    plan.key("embedding_scale", EMBEDDING_SCALE);
    plan.key("residual_scale", 0.22f32);
    plan.key("logit_scale", 6f32);
    plan.key("ssm.conv_kernel", count(CONV_KERNEL));
    plan.key("ssm.inner_size", count(inner(shape)));
    plan.key("ssm.state_size", count(STATE));
    plan.key("ssm.time_step_rank", count(inner(shape) / STATE_HEAD));
    plan.key("ssm.group_count", 1u32);
}

fn mamba(plan: &mut Plan, shape: &Shape, layer: u64) {
    let name = |part: &str| format!("blk.{layer}.ssm_{part}");
    let inner = inner(shape);
    let (heads, mixed) = (inner / STATE_HEAD, inner + 2 * STATE);
    plan.matrix(&name("in.weight"), &[shape.hidden, inner + mixed + heads]);
    plan.random(&name("conv1d.weight"), &[CONV_KERNEL, mixed], 0.5);
    plan.bias(&name("conv1d.bias"), &[mixed]);
    plan.bias(&name("dt.bias"), &[heads]);
    plan.constant(&name("a"), &[1, heads], DECAY);
    plan.constant(&name("d"), &[1, heads], 1.0);
    plan.constant(&name("norm.weight"), &[inner, 1], 1.0);
    plan.residual_output(&name("out.weight"), inner);
}
