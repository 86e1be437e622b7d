//! The architectures: which keys and tensors llama.cpp asks of each.
//!
//! The truth is `src/models/*.cpp` of the pinned llama.cpp (`load_arch_hparams`,
//! `load_arch_tensors`); each file here names its own. Siblings repeat each other on purpose.

mod deepseek2;
mod gpt_oss;
mod granitemoe;
mod llama;
mod olmoe;
mod phimoe;
mod qwen2moe;
mod qwen3moe;

use super::plan::Plan;
use super::{Request, Shape};
use crate::gguf_source::Tokenizer;
use anyhow::{Context, Result, ensure};
use motley_model::gguf::GgmlType;
use std::fmt;
use std::str::FromStr;

/// An architecture with routed experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// Qwen3-MoE: normalised softmax router, norms on heads.
    Qwen3moe,
    /// Mixtral: the `llama` architecture with experts.
    Llama,
    /// DeepSeek V3: latent attention, shared expert, group-limited sigmoid router with bias.
    Deepseek2,
    /// Qwen1.5/2-MoE: shared expert behind a gate, weights not normalised.
    Qwen2moe,
    /// Phi-3.5-MoE: biases on norms, attention and output.
    Phimoe,
    /// OLMoE: norms over whole queries and keys.
    Olmoe,
    /// gpt-oss: biases on experts, MXFP4, clamped SwiGLU, attention sinks.
    GptOss,
    /// Granite 3 MoE: four multipliers.
    Granitemoe,
}

impl Arch {
    /// Every architecture.
    pub const ALL: &'static [Self] = &[
        Self::Qwen3moe,
        Self::Llama,
        Self::Deepseek2,
        Self::Qwen2moe,
        Self::Phimoe,
        Self::Olmoe,
        Self::GptOss,
        Self::Granitemoe,
    ];

    /// The name in `general.architecture`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen3moe => "qwen3moe",
            Self::Llama => "llama",
            Self::Deepseek2 => "deepseek2",
            Self::Qwen2moe => "qwen2moe",
            Self::Phimoe => "phimoe",
            Self::Olmoe => "olmoe",
            Self::GptOss => "gpt-oss",
            Self::Granitemoe => "granitemoe",
        }
    }

    /// The type its published files mostly have.
    pub fn default_quant(self) -> GgmlType {
        match self {
            Self::GptOss => GgmlType::MXFP4,
            _ => GgmlType::Q4_0,
        }
    }

    /// Refuses shapes that llama.cpp would not load for this architecture.
    pub fn check(self, shape: &Shape) -> Result<()> {
        match self {
            Self::Qwen2moe | Self::Phimoe => heads_fill_hidden(self, shape),
            Self::Olmoe => {
                let Shape { heads, kv_heads, .. } = *shape;
                ensure!(kv_heads == heads, "olmoe: --kv-heads must be --heads ({heads})");
                heads_fill_hidden(self, shape)
            }
            Self::Deepseek2 => deepseek2::check(shape),
            Self::Qwen3moe | Self::Llama | Self::GptOss | Self::Granitemoe => Ok(()),
        }
    }

    /// The metadata and tensors of a model.
    pub fn plan(self, request: &Request, tokenizer: &Tokenizer) -> Result<Plan> {
        let mut plan = Plan::new(request, tokenizer);
        let shape = &request.shape;
        match self {
            Self::Qwen3moe => qwen3moe::fill(&mut plan, shape),
            Self::Llama => llama::fill(&mut plan, shape),
            Self::Deepseek2 => deepseek2::fill(&mut plan, shape),
            Self::Qwen2moe => qwen2moe::fill(&mut plan, shape),
            Self::Phimoe => phimoe::fill(&mut plan, shape, tokenizer.vocab()),
            Self::Olmoe => olmoe::fill(&mut plan, shape),
            Self::GptOss => gpt_oss::fill(&mut plan, shape),
            Self::Granitemoe => granitemoe::fill(&mut plan, shape),
        }
        Ok(plan)
    }
}

fn heads_fill_hidden(arch: Arch, shape: &Shape) -> Result<()> {
    let Shape { hidden, heads, head_dim, .. } = *shape;
    let fits = heads * head_dim == hidden;
    ensure!(fits, "{arch}: --heads {heads} times --head-dim {head_dim} must be --hidden {hidden}");
    Ok(())
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arch {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let names: Vec<&str> = Self::ALL.iter().map(|arch| arch.name()).collect();
        let found = Self::ALL.iter().copied().find(|arch| arch.name() == text);
        found.with_context(|| format!("no architecture `{text}`; there are {}", names.join(", ")))
    }
}
