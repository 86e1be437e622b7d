//! How a model chooses experts (technique W1), from its metadata and architecture. Computes no
//! scores: the router itself runs in llama.cpp's graph (`build_moe_ffn`).

use serde::Serialize;

use crate::error::SpecError;
use crate::keys::Keys;

/// How router logits become scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gating {
    /// Softmax over all experts, then the k best.
    Softmax,
    /// Sigmoid of each logit, then the k best (DeepSeek-V3 and its kin).
    Sigmoid,
    /// The k best logits, then softmax over those k (gpt-oss).
    SoftmaxWeight,
    /// Square root of softplus (DeepSeek-V4).
    SqrtSoftplus,
    /// Neither the file nor the architecture says it.
    Unknown,
}

/// Group-limited routing: only the best groups of experts take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Groups {
    /// Groups the experts form, in order of their number.
    pub count: u32,
    /// Groups that take part for a token.
    pub used: u32,
}

/// How experts are chosen and weighted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Router {
    /// From logits to scores.
    pub gating: Gating,
    /// Whether the k weights are divided by their sum.
    pub normalised: bool,
    pub groups: Option<Groups>,
    /// Factor on the weights, if not 1.
    pub weights_scale: Option<f64>,
    /// A bias that counts for the choice and not for the weight (`exp_probs_b`).
    pub selection_bias: bool,
    /// A bias added to the logits (`ffn_gate_inp.bias`).
    pub logit_bias: bool,
}

impl Router {
    /// Reads the router of a model with `experts` experts; biases are tensors and set by the
    /// caller.
    pub(crate) fn read(keys: &Keys<'_>, experts: u32) -> Result<Self, SpecError> {
        Ok(Self {
            gating: gating(keys)?,
            normalised: normalised(keys),
            groups: groups(keys, experts)?,
            weights_scale: keys.real("expert_weights_scale").filter(|s| *s != 0.0 && *s != 1.0),
            selection_bias: false,
            logit_bias: false,
        })
    }
}

/// What the graph of an architecture fixes, where it does not ask the metadata.
fn gating(keys: &Keys<'_>) -> Result<Gating, SpecError> {
    match keys.architecture {
        "gpt-oss" => return Ok(Gating::SoftmaxWeight),
        "llama4" | "mimo2" | "nemotron_h" | "nemotron_h_moe" => return Ok(Gating::Sigmoid),
        "arctic" | "bailingmoe" | "dbrx" | "deepseek" | "ernie4_5-moe" | "gemma4"
        | "granitehybrid" | "granitemoe" | "granite_swa" | "grok" | "grovemoe" | "hunyuan-moe"
        | "jamba" | "llada-moe" | "llama" | "maple" | "mellum" | "minimax-01" | "mistral3"
        | "nomic-bert-moe" | "olmoe" | "phimoe" | "qwen2moe" | "qwen3moe" | "qwen3next"
        | "qwen3vlmoe" | "qwen35moe" | "qwen4exp" | "rnd1" => return Ok(Gating::Softmax),
        _ => {}
    }
    Ok(match keys.count("expert_gating_func")? {
        Some(1) => Gating::Softmax,
        Some(2) => Gating::Sigmoid,
        Some(3) => Gating::SoftmaxWeight,
        Some(4) => Gating::SqrtSoftplus,
        _ => default_gating(keys.architecture),
    })
}

/// What llama.cpp assumes when a file of an architecture that asks does not answer.
fn default_gating(architecture: &str) -> Gating {
    match architecture {
        "deepseek2" | "deepseek2-ocr" => Gating::Softmax,
        "afmoe" | "cohere2moe" | "glm-dsa" | "glm4moe" | "glm5-next" | "hy_v3" | "laguna"
        | "step35" => Gating::Sigmoid,
        _ => Gating::Unknown,
    }
}

/// Fixed by the graph for these; the others ask `expert_weights_norm`, which defaults to no.
fn normalised(keys: &Keys<'_>) -> bool {
    match keys.architecture {
        "deepseek" | "gpt-oss" | "jamba" | "llada-moe" | "llama4" | "nomic-bert-moe" | "olmoe"
        | "qwen2moe" => false,
        "arctic" | "dbrx" | "ernie4_5-moe" | "gemma4" | "granitehybrid" | "granitemoe"
        | "granite_swa" | "grok" | "grovemoe" | "hunyuan-moe" | "kimi-linear" | "lfm2moe"
        | "llama" | "maple" | "mellum" | "mimo2" | "minimax-01" | "minimax-m2" | "mistral3"
        | "phimoe" | "qwen3moe" | "qwen3next" | "qwen3vlmoe" | "qwen35moe" | "qwen4exp"
        | "rnd1" | "smallthinker" => true,
        _ => keys.flag("expert_weights_norm").unwrap_or(false),
    }
}

fn groups(keys: &Keys<'_>, experts: u32) -> Result<Option<Groups>, SpecError> {
    let count = keys.bounded("expert_group_count", experts.into())?.unwrap_or(0);
    if count <= 1 {
        return Ok(None);
    }
    let used = keys.bounded("expert_group_used_count", count.into())?.unwrap_or(0);
    if used == 0 || !experts.is_multiple_of(count) {
        return Err(SpecError::Groups { experts, count, used });
    }
    Ok(Some(Groups { count, used }))
}
