//! DeepSeek V3 (`deepseek2.cpp`): latent attention (MLA, keys and values of one head absorbed),
//! a leading dense layer, one shared expert, a sigmoid router with bias, limited to groups.
//!
//! Derived numbers follow the proportions of V3 (hidden 7168, head 128: ranks 1536 and 512).

use super::Arch;
use crate::synth::Shape;
use crate::synth::plan::{Plan, count};
use anyhow::{Result, ensure};

/// Layers before the first with experts.
const DENSE_LAYERS: u64 = 1;

/// Widths of latent attention.
struct Latent {
    /// Rank of the query's bottleneck; none for the lite variant.
    q_rank: Option<u64>,
    /// Rank of the joint bottleneck of keys and values.
    kv_rank: u64,
    /// Width of a head without position.
    nope: u64,
    /// Width of a head with position.
    rope: u64,
}

impl Latent {
    fn of(shape: &Shape, lite: bool) -> Self {
        Self {
            q_rank: (!lite).then(|| q_rank(shape)),
            kv_rank: 4 * shape.head_dim,
            nope: shape.head_dim,
            rope: shape.head_dim / 2,
        }
    }
}

/// Rank of the query's bottleneck, where there is one.
pub(super) fn q_rank(shape: &Shape) -> u64 {
    (shape.hidden / 5).next_multiple_of(256)
}

/// Groups the router chooses from, and how many it keeps.
struct Groups {
    count: u64,
    used: u64,
}

impl Groups {
    fn of(shape: &Shape) -> Option<Self> {
        let count = if shape.experts >= 64 { 8 } else { 4 };
        let per_group = shape.experts / count;
        let fits = shape.experts.is_multiple_of(count)
            && per_group >= 2
            && per_group * (count / 2) >= shape.topk;
        fits.then_some(Self { count, used: count / 2 })
    }
}

/// Refuses shapes without a layer of experts.
pub(super) fn check(arch: Arch, shape: &Shape) -> Result<()> {
    ensure!(shape.layers > DENSE_LAYERS, "{arch}: --layers must be over {DENSE_LAYERS}");
    ensure!(
        Groups::of(shape).is_some(),
        "{arch}: half of 4 (from 64 experts: 8) groups of --experts must hold --topk"
    );
    Ok(())
}

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    // llama.cpp tells the lite variant by these numbers of layers alone.
    let lite = matches!(shape.layers, 26 | 27);
    fill_variant(plan, shape, &Latent::of(shape, lite));
}

/// The same, never the lite variant.
pub(super) fn fill_whole(plan: &mut Plan, shape: &Shape) {
    fill_variant(plan, shape, &Latent::of(shape, false));
}

fn fill_variant(plan: &mut Plan, shape: &Shape, latent: &Latent) {
    keys(plan, shape, latent);
    plan.ends();
    for layer in 0..shape.layers {
        plan.norms(layer);
        attention(plan, shape, latent, layer);
        if layer < DENSE_LAYERS {
            plan.dense_ffn(layer, "", shape.ff * shape.topk);
        } else {
            plan.experts(layer);
            plan.random(&format!("blk.{layer}.exp_probs_b.bias"), &[shape.experts], 0.1);
            plan.dense_ffn(layer, "_shexp", shape.ff);
        }
    }
}

fn keys(plan: &mut Plan, shape: &Shape, latent: &Latent) {
    plan.key("attention.head_count_kv", 1u32);
    if let Some(rank) = latent.q_rank {
        plan.key("attention.q_lora_rank", count(rank));
    }
    plan.key("attention.kv_lora_rank", count(latent.kv_rank));
    plan.key("attention.key_length", count(latent.kv_rank + latent.rope));
    plan.key("attention.value_length", count(latent.kv_rank));
    plan.key("attention.key_length_mla", count(latent.nope + latent.rope));
    plan.key("attention.value_length_mla", count(shape.head_dim));
    plan.key("rope.dimension_count", count(latent.rope));
    plan.key("rope.freq_base", 10_000f32);
    plan.keys_after_dense(DENSE_LAYERS);
    if let Some(groups) = Groups::of(shape) {
        plan.key("expert_group_count", count(groups.count));
        plan.key("expert_group_used_count", count(groups.used));
    }
}

fn attention(plan: &mut Plan, shape: &Shape, latent: &Latent, layer: u64) {
    let Latent { q_rank, kv_rank, nope, rope } = *latent;
    let Shape { hidden, heads, head_dim, .. } = *shape;
    let name = |part: &str| format!("blk.{layer}.attn_{part}.weight");
    let q_width = heads * (nope + rope);
    match q_rank {
        Some(rank) => {
            plan.matrix(&name("q_a"), &[hidden, rank]);
            plan.norm(&name("q_a_norm"), rank);
            plan.matrix(&name("q_b"), &[rank, q_width]);
        }
        None => plan.matrix(&name("q"), &[hidden, q_width]),
    }
    plan.matrix(&name("kv_a_mqa"), &[hidden, kv_rank + rope]);
    plan.norm(&name("kv_a_norm"), kv_rank);
    // llama.cpp's loader puts these two, in most types, into the AMX buffer where there is AMX;
    // its kernel then refuses their permuted inputs and the program aborts. BF16 never goes there.
    plan.matrix_bf16(&name("k_b"), &[nope, kv_rank, heads]);
    plan.matrix_bf16(&name("v_b"), &[kv_rank, head_dim, heads]);
    plan.attention_output(layer, heads * head_dim);
}
