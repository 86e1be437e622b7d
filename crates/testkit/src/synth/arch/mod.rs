//! The architectures: which keys and tensors llama.cpp asks of each.
//!
//! The truth is `src/models/*.cpp` of the pinned llama.cpp (`load_arch_hparams`,
//! `load_arch_tensors`); each file here names its own. Siblings repeat each other on purpose.

mod deepseek2;
mod gpt_oss;
mod granitemoe;
mod kind;
mod llama;
mod olmoe;
mod phimoe;
mod qwen2moe;
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
        Arch::Deepseek2 => deepseek2::check(shape),
        Arch::Qwen3moe | Arch::Llama | Arch::GptOss | Arch::Granitemoe => Ok(()),
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
    }
    plan
}

fn heads_fill_hidden(arch: Arch, shape: &Shape) -> Result<()> {
    let Shape { hidden, heads, head_dim, .. } = *shape;
    let fits = heads * head_dim == hidden;
    ensure!(fits, "{arch}: --heads {heads} times --head-dim {head_dim} must be --hidden {hidden}");
    Ok(())
}
