//! What a tensor is for, judged by llama.cpp's naming (`src/llama-arch.cpp`). Reads names only.

use serde::Serialize;

/// Which matrix of an expert's feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matrix {
    /// `ffn_gate_exps`, (experts, width, hidden).
    Gate,
    /// `ffn_up_exps`, (experts, width, hidden).
    Up,
    /// `ffn_down_exps`, (experts, hidden, width).
    Down,
    /// `ffn_gate_up_exps`, gate rows then up rows, (experts, 2 · width, hidden).
    GateUp,
}

/// Which part of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorPart {
    Weight,
    /// A row added to its product (gpt-oss).
    Bias,
    /// A factor on its product (NVFP4, gemma4).
    Scale,
    /// A factor on its input (NVFP4).
    InputScale,
}

/// What a tensor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "role")]
pub enum Role {
    /// Read by every token: attention, norms, dense feed-forward, output.
    Dense,
    /// The token embedding, of which a token reads one row unless it is the output matrix too.
    Embedding,
    /// One matrix of all routed experts of a layer; experts are its slowest dimension.
    Routed { layer: u32, matrix: Matrix, part: TensorPart },
    /// Experts that every token uses, and their gate.
    Shared { layer: u32 },
    /// Router weights, biases and selection biases.
    Router { layer: u32 },
    /// Chunk experts of GroveMoE (`_chexps`): routed by group, held with the dense weights.
    Chunk { layer: u32 },
    /// A layer that predicts further tokens (`nextn`): not run in plain decoding.
    Predictor { layer: u32 },
    /// One matrix of one expert, as files from before April 2024 hold them; not supported.
    OldExpert { layer: u32 },
}

impl Role {
    /// Whether it is a matrix of routed experts, not its bias or scale.
    pub fn is_expert_matrix(self) -> bool {
        matches!(self, Self::Routed { part: TensorPart::Weight, .. })
    }

    /// The role of the tensor called `name` in a model that runs `layers` layers.
    pub fn of(name: &str, layers: u32) -> Self {
        let Some((layer, rest)) = layer_of(name) else {
            return if name == "token_embd.weight" { Self::Embedding } else { Self::Dense };
        };
        if layer >= layers {
            return Self::Predictor { layer };
        }
        let (stem, suffix) = rest.rsplit_once('.').unwrap_or((rest, ""));
        match stem {
            "ffn_gate_exps" => Self::routed(layer, Matrix::Gate, suffix),
            "ffn_up_exps" => Self::routed(layer, Matrix::Up, suffix),
            "ffn_down_exps" => Self::routed(layer, Matrix::Down, suffix),
            "ffn_gate_up_exps" => Self::routed(layer, Matrix::GateUp, suffix),
            "ffn_gate_shexp" | "ffn_up_shexp" | "ffn_down_shexp" | "ffn_gate_inp_shexp" => {
                Self::Shared { layer }
            }
            "ffn_gate_chexps" | "ffn_up_chexps" | "ffn_down_chexps" => Self::Chunk { layer },
            "ffn_gate_inp" | "exp_probs_b" | "exp_probs_b_vl" => Self::Router { layer },
            _ if is_old_expert(stem) => Self::OldExpert { layer },
            _ => Self::Dense,
        }
    }

    fn routed(layer: u32, matrix: Matrix, suffix: &str) -> Self {
        let part = match suffix {
            "weight" => TensorPart::Weight,
            "bias" => TensorPart::Bias,
            "scale" => TensorPart::Scale,
            "input_scale" => TensorPart::InputScale,
            _ => return Self::Dense,
        };
        Self::Routed { layer, matrix, part }
    }
}

/// `blk.12.attn_q.weight` is layer 12 and `attn_q.weight`.
fn layer_of(name: &str) -> Option<(u32, &str)> {
    let (digits, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    Some((digits.parse().ok()?, rest))
}

/// `ffn_gate.7`: a matrix and an expert number where `ffn_gate_exps` should be.
fn is_old_expert(stem: &str) -> bool {
    stem.split_once('.').is_some_and(|(matrix, expert)| {
        matches!(matrix, "ffn_gate" | "ffn_up" | "ffn_down") && expert.parse::<u32>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_roles() {
        let routed = |layer, matrix, part| Role::Routed { layer, matrix, part };
        let table = [
            ("token_embd.weight", Role::Embedding),
            ("output.weight", Role::Dense),
            ("blk.0.attn_q.weight", Role::Dense),
            ("blk.0.ffn_gate.weight", Role::Dense),
            ("blk.0.ffn_norm_exps.weight", Role::Dense),
            ("blk.3.ffn_gate_exps.weight", routed(3, Matrix::Gate, TensorPart::Weight)),
            ("blk.3.ffn_up_exps.bias", routed(3, Matrix::Up, TensorPart::Bias)),
            ("blk.3.ffn_down_exps.scale", routed(3, Matrix::Down, TensorPart::Scale)),
            ("blk.3.ffn_up_exps.input_scale", routed(3, Matrix::Up, TensorPart::InputScale)),
            ("blk.3.ffn_gate_up_exps.weight", routed(3, Matrix::GateUp, TensorPart::Weight)),
            ("blk.3.ffn_up_exps.other", Role::Dense),
            ("blk.1.ffn_down_shexp.weight", Role::Shared { layer: 1 }),
            ("blk.1.ffn_gate_inp_shexp.weight", Role::Shared { layer: 1 }),
            ("blk.1.ffn_gate_inp.weight", Role::Router { layer: 1 }),
            ("blk.1.ffn_gate_inp.bias", Role::Router { layer: 1 }),
            ("blk.1.exp_probs_b.bias", Role::Router { layer: 1 }),
            ("blk.1.exp_probs_b", Role::Router { layer: 1 }),
            ("blk.1.ffn_up_chexps.weight", Role::Chunk { layer: 1 }),
            ("blk.4.ffn_up_exps.weight", Role::Predictor { layer: 4 }),
            ("blk.2.ffn_gate.7.weight", Role::OldExpert { layer: 2 }),
            ("blk.x.ffn_gate.7.weight", Role::Dense),
            ("blk.99999999999.attn_q.weight", Role::Dense),
        ];
        for (name, role) in table {
            assert_eq!(Role::of(name, 4), role, "{name}");
        }
    }
}
