//! The architectures by name.

use anyhow::{Context, Result};
use motley_model::gguf::GgmlType;
use std::fmt;
use std::str::FromStr;

/// An architecture.
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
    /// Qwen3.5-MoE: most layers a gated delta net in place of attention, gated shared expert.
    Qwen35moe,
    /// Granite 4 hybrid: most layers Mamba2 in place of attention, shared expert.
    Granitehybrid,
    /// GLM-4.5: sigmoid router with bias, shared expert, a layer that predicts further tokens.
    Glm4moe,
    /// MiniMax-M2: norms over whole queries and keys, sigmoid router with bias.
    MinimaxM2,
    /// DeepSeek V3.2: V3 with an indexer that chooses the tokens attention looks at.
    Deepseek32,
    /// Gemma 4 with experts: sliding windows, dense FFN beside experts of two matrices.
    Gemma4,
    /// Qwen3: no experts. What llama.cpp has of it ranks texts, as it does for none of the others.
    Qwen3,
}

impl Arch {
    /// Every architecture with routed experts.
    pub const ALL: &'static [Self] = &[
        Self::Qwen3moe,
        Self::Llama,
        Self::Deepseek2,
        Self::Qwen2moe,
        Self::Phimoe,
        Self::Olmoe,
        Self::GptOss,
        Self::Granitemoe,
        Self::Qwen35moe,
        Self::Granitehybrid,
        Self::Glm4moe,
        Self::MinimaxM2,
        Self::Deepseek32,
        Self::Gemma4,
    ];

    /// Those whose experts differ most: routers, activations, types, biases, shared experts.
    pub const DISTINCT: [Self; 8] = [
        Self::Qwen3moe,
        Self::Llama,
        Self::Deepseek2,
        Self::Qwen2moe,
        Self::Olmoe,
        Self::GptOss,
        Self::Glm4moe,
        Self::Gemma4,
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
            Self::Qwen35moe => "qwen35moe",
            Self::Granitehybrid => "granitehybrid",
            Self::Glm4moe => "glm4moe",
            Self::MinimaxM2 => "minimax-m2",
            Self::Deepseek32 => "deepseek32",
            Self::Gemma4 => "gemma4",
            Self::Qwen3 => "qwen3",
        }
    }

    /// The type its published files mostly have.
    pub fn default_quant(self) -> GgmlType {
        match self {
            Self::GptOss => GgmlType::MXFP4,
            _ => GgmlType::Q4_0,
        }
    }
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
