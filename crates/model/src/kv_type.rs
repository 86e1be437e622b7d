//! The numbers a KV cache is kept in. Llama.cpp's names; its arithmetic is not here.

use crate::gguf::GgmlType;
use crate::spec::ModelSpec;
use serde::{Deserialize, Serialize};

/// What keys and values are rounded to when they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvType {
    /// 16 bits each: llama.cpp's default.
    #[default]
    F16,
    /// 8 bits each and a scale for every 32: a little more than half of it.
    Q8_0,
    /// 4 bits each and a scale for every 32: a little more than a quarter.
    Q4_0,
}

/// Numbers that share a scale.
const BLOCK: u64 = 32;

/// Why a model cannot have its keys and values in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotInBlocks {
    #[error("this model's attention heads do not divide into blocks of 32")]
    Heads,
    /// Values in blocks are for llama.cpp's flash attention only.
    #[error("llama.cpp computes this architecture without flash attention, which blocks need")]
    NoFlashAttention,
}

impl KvType {
    /// As flags and plans name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }

    /// As ggml knows it.
    pub fn ggml_type(self) -> GgmlType {
        match self {
            Self::F16 => GgmlType::F16,
            Self::Q8_0 => GgmlType::Q8_0,
            Self::Q4_0 => GgmlType::Q4_0,
        }
    }

    /// Whether its numbers are in blocks.
    pub fn in_blocks(self) -> bool {
        self != Self::F16
    }

    /// Bytes that `elements` numbers take.
    pub fn bytes(self, elements: u64) -> u64 {
        let blocks = elements.div_ceil(BLOCK);
        match self {
            Self::F16 => elements.saturating_mul(2),
            Self::Q8_0 => blocks.saturating_mul(34),
            Self::Q4_0 => blocks.saturating_mul(18),
        }
    }
}

impl NotInBlocks {
    /// Whether llama.cpp would refuse blocks for `spec`, and why (`llama_init_from_model`).
    pub fn of(spec: &ModelSpec) -> Option<Self> {
        let attention = &spec.shape.attention;
        let (key, value) = attention.window_widths;
        let widths = [attention.key_width, attention.value_width, key, value];
        if spec.architecture == "grok" {
            return Some(Self::NoFlashAttention);
        }
        let whole = widths.iter().all(|width| width.is_multiple_of(BLOCK));
        (!whole).then_some(Self::Heads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_take_a_little_more_than_half_and_a_quarter() {
        assert_eq!(KvType::F16.bytes(1024), 2048);
        assert_eq!(KvType::Q8_0.bytes(1024), 1088);
        assert_eq!(KvType::Q4_0.bytes(1024), 576);
        assert_eq!(KvType::Q8_0.bytes(33), 68);
        assert_eq!(KvType::Q8_0.bytes(u64::MAX), u64::MAX);
        for kv in [KvType::F16, KvType::Q8_0, KvType::Q4_0] {
            assert_eq!(serde_json::to_value(kv).unwrap(), kv.name());
            assert_eq!(Some(kv.bytes(64)), kv.ggml_type().tensor_bytes(&[64]));
        }
    }
}
