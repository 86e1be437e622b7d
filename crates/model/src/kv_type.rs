//! The numbers a KV cache is kept in. Llama.cpp's names; its arithmetic is not here.

use crate::gguf::GgmlType;
use crate::hparams::Attention;
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
}

impl KvType {
    /// As flags and plans name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        }
    }

    /// As ggml knows it.
    pub fn ggml_type(self) -> GgmlType {
        match self {
            Self::F16 => GgmlType::F16,
            Self::Q8_0 => GgmlType::Q8_0,
        }
    }

    /// Bytes that `elements` numbers take.
    pub fn bytes(self, elements: u64) -> u64 {
        match self {
            Self::F16 => elements.saturating_mul(2),
            Self::Q8_0 => elements.div_ceil(32).saturating_mul(34),
        }
    }

    /// Whether heads of this width divide into its blocks; llama.cpp refuses others.
    pub fn fits(self, attention: &Attention) -> bool {
        let divides = |width: u64| width.is_multiple_of(32);
        self == Self::F16 || (divides(attention.key_width) && divides(attention.value_width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bits_take_a_little_more_than_half() {
        assert_eq!(KvType::F16.bytes(1024), 2048);
        assert_eq!(KvType::Q8_0.bytes(1024), 1088);
        assert_eq!(KvType::Q8_0.bytes(33), 68);
        assert_eq!(KvType::Q8_0.bytes(u64::MAX), u64::MAX);
        for kv in [KvType::F16, KvType::Q8_0] {
            assert_eq!(serde_json::to_value(kv).unwrap(), kv.name());
            assert_eq!(Some(kv.bytes(64)), kv.ggml_type().tensor_bytes(&[64]));
        }
    }
}
