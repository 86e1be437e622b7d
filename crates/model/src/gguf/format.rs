//! The fixed numbers of the format, from `ggml/include/gguf.h` and `ggml.h`.

/// First four bytes of every GGUF file.
pub const MAGIC: [u8; 4] = *b"GGUF";
/// The version written; 2 and 3 are read and share one layout.
pub const VERSION: u32 = 3;
/// Alignment of tensor data when the file does not say (`GGUF_DEFAULT_ALIGNMENT`).
pub const DEFAULT_ALIGNMENT_BYTES: u64 = 32;
/// Metadata key that overrides [`DEFAULT_ALIGNMENT_BYTES`]; its value is a `u32`.
pub const ALIGNMENT_KEY: &str = "general.alignment";
/// Most dimensions a tensor may have (`GGML_MAX_DIMS`).
pub const MAX_DIMS: usize = 4;
/// Longest tensor name in bytes (`GGML_MAX_NAME` less its terminator).
pub const MAX_TENSOR_NAME_BYTES: usize = 63;

/// `offset` rounded up to a multiple of `alignment` (a power of two), or `None` on overflow.
pub(crate) fn align_up(offset: u64, alignment: u64) -> Option<u64> {
    Some(offset.checked_add(alignment - 1)? & !(alignment - 1))
}
