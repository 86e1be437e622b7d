//! The architectures: which keys and tensors llama.cpp asks of each.
//!
//! The truth is `src/models/*.cpp` of the pinned llama.cpp (`load_arch_hparams`,
//! `load_arch_tensors`); each file here names its own. Siblings repeat each other on purpose.

mod deepseek2;
mod deepseek32;
mod gemma4;
mod glm4moe;
mod gpt_oss;
mod granitehybrid;
mod granitemoe;
mod kind;
mod llama;
mod minimax_m2;
mod olmoe;
mod phimoe;
mod qwen2moe;
mod qwen3;
mod qwen35moe;
mod qwen3moe;

pub use kind::Arch;

use super::plan::Plan;
use super::{Request, Shape};
use crate::gguf_source::Tokenizer;
use anyhow::{Result, ensure};

/// Refuses shapes that llama.cpp would not load for this architecture.
pub fn check(arch: Arch, shape: &Shape) -> Result<()> {
    match arch {
        Arch::Qwen2moe | Arch::Phimoe => heads_fill_hidden(arch, shape),
        Arch::Olmoe => {
            let Shape { heads, kv_heads, .. } = *shape;
            ensure!(kv_heads == heads, "olmoe: --kv-heads must be --heads ({heads})");
            heads_fill_hidden(arch, shape)
        }
        Arch::Deepseek2 => deepseek2::check(arch, shape),
        Arch::Deepseek32 => deepseek32::check(shape),
        Arch::Glm4moe => glm4moe::check(shape),
        Arch::Qwen35moe | Arch::Granitehybrid | Arch::Gemma4 => layers_of_both_kinds(arch, shape),
        Arch::Qwen3moe
        | Arch::Llama
        | Arch::GptOss
        | Arch::Granitemoe
        | Arch::MinimaxM2
        | Arch::Qwen3 => Ok(()),
    }
}

/// The metadata and tensors of a model.
pub fn plan(request: &Request, tokenizer: &Tokenizer) -> Plan {
    let mut plan = Plan::new(request, tokenizer);
    let shape = &request.shape;
    match request.arch {
        Arch::Qwen3moe => qwen3moe::fill(&mut plan, shape),
        Arch::Llama => llama::fill(&mut plan, shape),
        Arch::Deepseek2 => deepseek2::fill(&mut plan, shape),
        Arch::Qwen2moe => qwen2moe::fill(&mut plan, shape),
        Arch::Phimoe => phimoe::fill(&mut plan, shape, tokenizer.vocab()),
        Arch::Olmoe => olmoe::fill(&mut plan, shape),
        Arch::GptOss => gpt_oss::fill(&mut plan, shape),
        Arch::Granitemoe => granitemoe::fill(&mut plan, shape),
        Arch::Qwen35moe => qwen35moe::fill(&mut plan, shape),
        Arch::Granitehybrid => granitehybrid::fill(&mut plan, shape),
        Arch::Glm4moe => glm4moe::fill(&mut plan, shape),
        Arch::MinimaxM2 => minimax_m2::fill(&mut plan, shape),
        Arch::Deepseek32 => deepseek32::fill(&mut plan, shape),
        Arch::Gemma4 => gemma4::fill(&mut plan, shape),
        Arch::Qwen3 => qwen3::fill(&mut plan, shape),
    }
    plan
}

/// llama.cpp keeps a memory for each kind of layer and none may be empty.
fn layers_of_both_kinds(arch: Arch, shape: &Shape) -> Result<()> {
    ensure!(shape.layers >= 2, "{arch}: --layers must be over 1");
    Ok(())
}

fn heads_fill_hidden(arch: Arch, shape: &Shape) -> Result<()> {
    let Shape { hidden, heads, head_dim, .. } = *shape;
    let fits = heads * head_dim == hidden;
    ensure!(fits, "{arch}: --heads {heads} times --head-dim {head_dim} must be --hidden {hidden}");
    Ok(())
}
