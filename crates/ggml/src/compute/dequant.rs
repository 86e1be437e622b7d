//! Quantised rows to floats, by ggml's own conversion of each type. For what computes
//! outside ggml: static graphs of another runtime.

use crate::api;
use motley_model::gguf::GgmlType;

/// Why bytes have no floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DequantError {
    /// Not whole blocks of the type.
    #[error("{bytes} bytes are not whole blocks of {ty}")]
    Blocks {
        /// What the bytes were said to be.
        ty: GgmlType,
        /// How many there are.
        bytes: usize,
    },
    /// ggml has no conversion for it.
    #[error("ggml does not convert {0} to floats")]
    Type(GgmlType),
}

/// All elements of `bytes`, whole rows of type `ty`.
pub fn dequantise(ty: GgmlType, bytes: &[u8]) -> Result<Vec<f32>, DequantError> {
    let (block_bytes, block_elements) = (ty.block_bytes() as usize, ty.block_elements() as usize);
    if !bytes.len().is_multiple_of(block_bytes) {
        return Err(DequantError::Blocks { ty, bytes: bytes.len() });
    }
    if ty == GgmlType::F32 {
        let words = bytes.as_chunks::<4>().0;
        return Ok(words.iter().map(|&word| f32::from_le_bytes(word)).collect());
    }
    // SAFETY: ids of `GgmlType` are those of the pinned ggml (a test of `motley-model`
    // compares them); the table is static.
    let traits = unsafe { &*api::ggml_get_type_traits(ty.id() as api::ggml_type) };
    let to_float = traits.to_float.ok_or(DequantError::Type(ty))?;
    let aligned = Aligned::of(bytes);
    let mut floats = vec![0.0; bytes.len() / block_bytes * block_elements];
    // SAFETY: ggml reads whole blocks for `floats.len()` elements, which is what the
    // aligned copy holds, and writes as many floats.
    unsafe { to_float(aligned.0.as_ptr().cast(), floats.as_mut_ptr(), floats.len() as i64) };
    Ok(floats)
}

/// Bytes where ggml's blocks may begin: they hold 16-bit and 32-bit fields.
struct Aligned(Vec<u64>);

impl Aligned {
    fn of(bytes: &[u8]) -> Self {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        Self(words.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_q8_0_and_one_of_f16() {
        // Scale 0.5 as f16, then 32 signed bytes.
        let mut block = vec![0x00, 0x38];
        block.extend((0..32).map(|n: i8| (n - 16) as u8));
        let expected: Vec<f32> = (0..32).map(|n| (n as f32 - 16.0) * 0.5).collect();
        assert_eq!(dequantise(GgmlType::Q8_0, &block), Ok(expected));
        assert_eq!(dequantise(GgmlType::F16, &[0x00, 0x3c, 0x00, 0xc0]), Ok(vec![1.0, -2.0]));
        assert_eq!(dequantise(GgmlType::F32, &1.5_f32.to_le_bytes()), Ok(vec![1.5]));
    }

    #[test]
    fn what_has_no_floats_says_why() {
        let short = DequantError::Blocks { ty: GgmlType::Q8_0, bytes: 33 };
        assert_eq!(dequantise(GgmlType::Q8_0, &[0; 33]), Err(short));
        assert_eq!(dequantise(GgmlType::I8, &[0]), Err(DequantError::Type(GgmlType::I8)));
    }
}
