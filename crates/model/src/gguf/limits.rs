//! What a header may ask for.

use super::format::{MAX_DIMS, MAX_TENSOR_NAME_BYTES};

/// Upper bounds of a header; the defaults allow every published model with ample room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GgufLimits {
    /// Metadata entries (real files: fewer than 200).
    pub max_metadata_entries: u64,
    /// Bytes of one metadata key.
    pub max_key_bytes: u64,
    /// Bytes of one string value (chat templates: about 100 KB).
    pub max_string_bytes: u64,
    /// Elements of one array (vocabularies and merges: about 500 000).
    pub max_array_len: u64,
    /// Bytes of everything before the tensor data.
    pub max_header_bytes: u64,
    /// Tensors of one file (real files: fewer than 3000).
    pub max_tensors: u64,
    /// Dimensions of one tensor; more than ggml's four are never accepted.
    pub max_dims: u32,
    /// Bytes of one tensor name; ggml holds 63.
    pub max_tensor_name_bytes: u64,
    /// `general.alignment`.
    pub max_alignment_bytes: u64,
}

impl Default for GgufLimits {
    fn default() -> Self {
        Self {
            max_metadata_entries: 1 << 16,
            max_key_bytes: 1 << 12,
            max_string_bytes: 1 << 24,
            max_array_len: 1 << 24,
            max_header_bytes: 1 << 29,
            max_tensors: 1 << 17,
            max_dims: MAX_DIMS as u32,
            max_tensor_name_bytes: MAX_TENSOR_NAME_BYTES as u64,
            max_alignment_bytes: 1 << 20,
        }
    }
}
