//! Gemma 4 with experts (`gemma4.cpp`): most layers slide a window; the others have wider heads,
//! fewer of them for KV, and take keys as values. A dense FFN runs beside the experts, whose gate
//! and up matrices are one and whose results have a scale each; norms also after every part.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Heads of one layer.
struct Heads {
    sliding: bool,
    kv: u64,
    width: u64,
}

impl Heads {
    /// One layer of six sees everything, as published, but at least one.
    fn of(shape: &Shape, layer: u64) -> Self {
        let sliding = !(layer + 1).is_multiple_of(shape.layers.min(6));
        if sliding {
            Self { sliding, kv: shape.kv_heads, width: shape.head_dim }
        } else {
            Self { sliding, kv: 1, width: 2 * shape.head_dim }
        }
    }
}

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    keys(plan, shape);
    plan.ends_scaled((shape.hidden as f32).sqrt());
    plan.constant("rope_freqs.weight", &[shape.head_dim], 1.0);
    for layer in 0..shape.layers {
        attention(plan, shape, layer);
        feed_forward(plan, shape, layer);
        plan.constant(&format!("blk.{layer}.layer_output_scale.weight"), &[1], 1.0);
    }
}

fn keys(plan: &mut Plan, shape: &Shape) {
    let layers: Vec<Heads> = (0..shape.layers).map(|layer| Heads::of(shape, layer)).collect();
    let sliding: Vec<bool> = layers.iter().map(|heads| heads.sliding).collect();
    let kv_heads: Vec<u32> = layers.iter().map(|heads| count(heads.kv)).collect();
    plan.key("attention.sliding_window_pattern", sliding);
    plan.key("attention.sliding_window", 128u32);
    plan.key("attention.head_count_kv", kv_heads);
    for (suffix, width, base) in
        [("", 2 * shape.head_dim, 1_000_000f32), ("_swa", shape.head_dim, 10_000f32)]
    {
        plan.key(&format!("attention.key_length{suffix}"), count(width));
        plan.key(&format!("attention.value_length{suffix}"), count(width));
        plan.key(&format!("rope.dimension_count{suffix}"), count(width));
        plan.key(&format!("rope.freq_base{suffix}"), base);
    }
    plan.key("embedding_length_per_layer_input", 0u32);
    plan.key("final_logit_softcapping", 30f32);
    plan.key("feed_forward_length", count(3 * shape.ff));
    plan.key("expert_feed_forward_length", count(shape.ff));
}

fn attention(plan: &mut Plan, shape: &Shape, layer: u64) {
    let Heads { sliding, kv, width } = Heads::of(shape, layer);
    let name = |part: &str| format!("blk.{layer}.{part}.weight");
    plan.norm(&name("attn_norm"), shape.hidden);
    plan.matrix(&name("attn_q"), &[shape.hidden, shape.heads * width]);
    plan.matrix(&name("attn_k"), &[shape.hidden, kv * width]);
    if sliding {
        plan.matrix(&name("attn_v"), &[shape.hidden, kv * width]);
    }
    // The graph does not scale scores; the norm of queries does.
    plan.constant(&name("attn_q_norm"), &[width], 1.0 / (width as f32).sqrt());
    plan.norm(&name("attn_k_norm"), width);
    plan.attention_output(layer, shape.heads * width);
    // In place of a smaller output matrix, whose size this norm takes away.
    let size = 1.0 / (2.0 * shape.layers as f32).sqrt();
    plan.constant(&name("post_attention_norm"), &[shape.hidden], size);
}

fn feed_forward(plan: &mut Plan, shape: &Shape, layer: u64) {
    let name = |part: &str| format!("blk.{layer}.{part}");
    for part in
        ["ffn_norm", "post_ffw_norm", "post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"]
    {
        plan.norm(&name(&format!("{part}.weight")), shape.hidden);
    }
    plan.dense_ffn(layer, "", 3 * shape.ff);
    plan.experts_fused(layer);
    plan.random(&name("ffn_down_exps.scale"), &[shape.experts], 1.0);
    // The graph divides the router's input by this.
    plan.constant(&name("ffn_gate_inp.scale"), &[shape.hidden], (shape.hidden as f32).sqrt());
}
