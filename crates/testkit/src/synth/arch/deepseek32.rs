//! DeepSeek V3.2 (`deepseek32.cpp`): V3 with an indexer in every layer, which chooses the tokens
//! that attention looks at.

use super::{Arch, deepseek2};
use crate::synth::Shape;
use crate::synth::plan::{Plan, count};
use anyhow::{Result, ensure};

/// Width of the indexer's heads; llama.cpp takes powers of two from 64.
const INDEXER_WIDTH: u64 = 128;

/// Tokens that the indexer chooses: so few that texts of tests are longer.
const INDEXER_TOKENS: u32 = 64;

/// Refuses shapes that V3 refuses, and heads whose positions the indexer's do not hold.
pub(super) fn check(shape: &Shape) -> Result<()> {
    let most = 2 * INDEXER_WIDTH;
    ensure!(shape.head_dim <= most, "deepseek32: --head-dim takes at most {most}");
    deepseek2::check(Arch::Deepseek32, shape)
}

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    plan.key("attention.indexer.head_count", count(indexer_heads(shape)));
    plan.key("attention.indexer.key_length", count(INDEXER_WIDTH));
    plan.key("attention.indexer.top_k", INDEXER_TOKENS);
    deepseek2::fill_whole(plan, shape);
    for layer in 0..shape.layers {
        indexer(plan, shape, layer);
    }
}

fn indexer_heads(shape: &Shape) -> u64 {
    shape.heads.div_ceil(2)
}

fn indexer(plan: &mut Plan, shape: &Shape, layer: u64) {
    let (hidden, heads) = (shape.hidden, indexer_heads(shape));
    let name = |part: &str| format!("blk.{layer}.indexer.{part}");
    plan.norm(&name("k_norm.weight"), INDEXER_WIDTH);
    plan.bias(&name("k_norm.bias"), &[INDEXER_WIDTH]);
    plan.matrix(&name("proj.weight"), &[hidden, heads]);
    plan.matrix(&name("attn_k.weight"), &[hidden, INDEXER_WIDTH]);
    let q_rank = deepseek2::q_rank(shape);
    plan.matrix(&name("attn_q_b.weight"), &[q_rank, heads * INDEXER_WIDTH]);
}
