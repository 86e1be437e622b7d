//! GLM-4.5 (`glm4-moe.cpp`): biases on q, k, v, norms on heads, a leading dense layer, one shared
//! expert, a sigmoid router with bias. One layer more predicts further tokens, as in published
//! files; plain decoding leaves it out.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};
use crate::synth::shape::LAYERS_MAX;
use anyhow::{Result, ensure};

/// Layers before the first with experts.
const DENSE_LAYERS: u64 = 1;

/// Refuses shapes without a layer of experts, or without room for the one that predicts.
pub(super) fn check(shape: &Shape) -> Result<()> {
    let (least, most) = (DENSE_LAYERS + 1, LAYERS_MAX - 1);
    ensure!((least..=most).contains(&shape.layers), "glm4moe: --layers takes {least} to {most}");
    Ok(())
}

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    keys(plan, shape);
    plan.ends();
    for layer in 0..=shape.layers {
        attention(plan, shape, layer);
        if layer < DENSE_LAYERS {
            plan.dense_ffn(layer, "", shape.ff * shape.topk);
        } else {
            plan.experts(layer);
            plan.random(&format!("blk.{layer}.exp_probs_b.bias"), &[shape.experts], 0.1);
            plan.dense_ffn(layer, "_shexp", shape.ff);
        }
    }
    predictor(plan, shape);
}

fn keys(plan: &mut Plan, shape: &Shape) {
    plan.key("block_count", count(shape.layers + 1));
    plan.key("nextn_predict_layers", 1u32);
    plan.head_keys();
    plan.key("rope.dimension_count", count(shape.head_dim / 2));
    plan.key("rope.freq_base", 1_000_000f32);
    plan.keys_after_dense(DENSE_LAYERS);
}

fn attention(plan: &mut Plan, shape: &Shape, layer: u64) {
    plan.norm(&format!("blk.{layer}.attn_norm.weight"), shape.hidden);
    plan.norm(&format!("blk.{layer}.post_attention_norm.weight"), shape.hidden);
    plan.attention(layer);
    plan.attention_biases(layer);
    plan.norm(&format!("blk.{layer}.attn_q_norm.weight"), shape.head_dim);
    plan.norm(&format!("blk.{layer}.attn_k_norm.weight"), shape.head_dim);
}

/// What the last layer has more than others: it joins a token with the state before it.
fn predictor(plan: &mut Plan, shape: &Shape) {
    let name = |part: &str| format!("blk.{}.nextn.{part}.weight", shape.layers);
    plan.matrix(&name("eh_proj"), &[2 * shape.hidden, shape.hidden]);
    plan.norm(&name("enorm"), shape.hidden);
    plan.norm(&name("hnorm"), shape.hidden);
    plan.norm(&name("shared_head_norm"), shape.hidden);
}
