//! The element types of ggml tensors: names, block sizes, and bytes per row. No kernels.

use super::format::MAX_DIMS;

/// Declares every type once: variant, id in the file, ggml's name, elements and bytes per block.
macro_rules! ggml_types {
    ($($variant:ident = $id:literal, $name:literal, $elements:literal, $bytes:literal;)*) => {
        /// An element type of the pinned llama.cpp (`enum ggml_type`); removed types are absent.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(non_camel_case_types, reason = "the names are ggml's own")]
        pub enum GgmlType {
            $(#[doc = concat!("`", $name, "`: ", $elements, " elements in ", $bytes, " bytes.")]
            $variant = $id,)*
        }

        impl GgmlType {
            /// Every type, in order of its id.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The type with this id in a GGUF file, unless unknown or removed.
            pub const fn from_id(id: u32) -> Option<Self> {
                match id {
                    $($id => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// ggml's name, as `ggml_type_name` gives it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Elements per block; a row holds whole blocks.
            pub const fn block_elements(self) -> u64 {
                match self {
                    $(Self::$variant => $elements,)*
                }
            }

            /// Bytes per block.
            pub const fn block_bytes(self) -> u64 {
                match self {
                    $(Self::$variant => $bytes,)*
                }
            }
        }
    };
}

ggml_types! {
    F32 = 0, "f32", 1, 4;
    F16 = 1, "f16", 1, 2;
    Q4_0 = 2, "q4_0", 32, 18;
    Q4_1 = 3, "q4_1", 32, 20;
    Q5_0 = 6, "q5_0", 32, 22;
    Q5_1 = 7, "q5_1", 32, 24;
    Q8_0 = 8, "q8_0", 32, 34;
    Q8_1 = 9, "q8_1", 32, 36;
    Q2_K = 10, "q2_K", 256, 84;
    Q3_K = 11, "q3_K", 256, 110;
    Q4_K = 12, "q4_K", 256, 144;
    Q5_K = 13, "q5_K", 256, 176;
    Q6_K = 14, "q6_K", 256, 210;
    Q8_K = 15, "q8_K", 256, 292;
    IQ2_XXS = 16, "iq2_xxs", 256, 66;
    IQ2_XS = 17, "iq2_xs", 256, 74;
    IQ3_XXS = 18, "iq3_xxs", 256, 98;
    IQ1_S = 19, "iq1_s", 256, 50;
    IQ4_NL = 20, "iq4_nl", 32, 18;
    IQ3_S = 21, "iq3_s", 256, 110;
    IQ2_S = 22, "iq2_s", 256, 82;
    IQ4_XS = 23, "iq4_xs", 256, 136;
    I8 = 24, "i8", 1, 1;
    I16 = 25, "i16", 1, 2;
    I32 = 26, "i32", 1, 4;
    I64 = 27, "i64", 1, 8;
    F64 = 28, "f64", 1, 8;
    IQ1_M = 29, "iq1_m", 256, 56;
    BF16 = 30, "bf16", 1, 2;
    TQ1_0 = 34, "tq1_0", 256, 54;
    TQ2_0 = 35, "tq2_0", 256, 66;
    MXFP4 = 39, "mxfp4", 32, 17;
    NVFP4 = 40, "nvfp4", 64, 36;
    Q1_0 = 41, "q1_0", 128, 18;
    Q2_0 = 42, "q2_0", 64, 18;
}

impl GgmlType {
    /// The id in a GGUF file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Bytes of one row of `elements`, or `None` when it is not whole blocks or overflows.
    pub const fn row_bytes(self, elements: u64) -> Option<u64> {
        if !elements.is_multiple_of(self.block_elements()) {
            return None;
        }
        (elements / self.block_elements()).checked_mul(self.block_bytes())
    }

    /// Bytes of a tensor of these dimensions (fastest first), with the same refusals as
    /// [`Self::row_bytes`]. No dimensions means one element, as in ggml.
    pub fn tensor_bytes(self, dims: &[u64]) -> Option<u64> {
        if dims.len() > MAX_DIMS {
            return None;
        }
        let (row, rest) = dims.split_first().map_or((1, dims), |(row, rest)| (*row, rest));
        rest.iter().try_fold(self.row_bytes(row)?, |bytes, dim| bytes.checked_mul(*dim))
    }

    /// Mean bits per weight.
    pub fn bits_per_weight(self) -> f64 {
        self.block_bytes() as f64 * 8.0 / self.block_elements() as f64
    }
}

impl std::fmt::Display for GgmlType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for GgmlType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::GgmlType::*;
    use super::*;

    /// Sizes from the `static_assert`s of `ggml-common.h`, written out as their terms.
    #[test]
    fn sizes_follow_ggml_common_h() {
        let table = [
            (Q1_0, 2 + 128 / 8),
            (Q2_0, 2 + 64 / 4),
            (Q4_0, 2 + 32 / 2),
            (Q4_1, 2 * 2 + 32 / 2),
            (MXFP4, 1 + 32 / 2),
            (NVFP4, 64 / 16 + 64 / 2),
            (Q5_0, 2 + 4 + 32 / 2),
            (Q5_1, 2 * 2 + 4 + 32 / 2),
            (Q8_0, 2 + 32),
            (Q8_1, 2 * 2 + 32),
            (TQ1_0, 2 + 256 / 64 + (256 - 4 * 256 / 64) / 5),
            (TQ2_0, 2 + 256 / 4),
            (Q2_K, 2 * 2 + 256 / 16 + 256 / 4),
            (Q3_K, 2 + 256 / 4 + 256 / 8 + 12),
            (Q4_K, 2 * 2 + 12 + 256 / 2),
            (Q5_K, 2 * 2 + 12 + 256 / 2 + 256 / 8),
            (Q6_K, 2 + 256 / 16 + 3 * 256 / 4),
            (Q8_K, 4 + 256 + 256 / 16 * 2),
            (IQ2_XXS, 2 + 256 / 8 * 2),
            (IQ2_XS, 2 + 256 / 8 * 2 + 256 / 32),
            (IQ2_S, 2 + 256 / 4 + 256 / 16),
            (IQ3_XXS, 2 + 3 * (256 / 8)),
            (IQ3_S, 2 + 13 * (256 / 32) + 256 / 64),
            (IQ1_S, 2 + 256 / 8 + 256 / 16),
            (IQ1_M, 256 / 8 + 256 / 16 + 256 / 32),
            (IQ4_NL, 2 + 32 / 2),
            (IQ4_XS, 2 + 2 + 256 / 64 + 256 / 2),
            (F32, 4),
            (F16, 2),
            (BF16, 2),
            (F64, 8),
            (I8, 1),
            (I16, 2),
            (I32, 4),
            (I64, 8),
        ];
        for (ty, bytes) in table {
            assert_eq!(ty.block_bytes(), bytes, "{ty}");
        }
        assert_eq!(table.len(), GgmlType::ALL.len());
    }

    #[test]
    fn ids_are_read_back_and_removed_ones_refused() {
        for ty in GgmlType::ALL {
            assert_eq!(GgmlType::from_id(ty.id()), Some(*ty));
        }
        for removed in [4, 5, 31, 32, 33, 36, 37, 38, 43, u32::MAX] {
            assert_eq!(GgmlType::from_id(removed), None);
        }
    }

    #[test]
    fn tensor_bytes_refuses_part_blocks_and_overflow() {
        assert_eq!(Q4_0.tensor_bytes(&[64, 3]), Some(2 * 18 * 3));
        assert_eq!(F32.tensor_bytes(&[]), Some(4));
        assert_eq!(F32.tensor_bytes(&[0, 7]), Some(0));
        assert_eq!(Q4_0.tensor_bytes(&[33]), None);
        assert_eq!(F32.tensor_bytes(&[1 << 62, 1]), None);
        assert_eq!(F16.tensor_bytes(&[1 << 40, 1 << 40]), None);
        assert_eq!(F32.tensor_bytes(&[1, 1, 1, 1, 1]), None);
    }
}
