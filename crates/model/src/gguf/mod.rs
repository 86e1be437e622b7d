//! The GGUF container: reading with limits, writing, and presenting several files as one.
//!
//! Knows nothing of architectures or experts; that is the business of `spec`.
//!
//! ```text
//! offset 0   "GGUF"  u32 version  u64 tensor count  u64 metadata count
//!            metadata: { string key, u32 type, value } ...
//!            tensors:  { string name, u32 n_dims, u64 dims[n_dims], u32 type, u64 offset } ...
//!            zero padding to general.alignment (default 32)
//! data       tensor bytes, each at data + offset, every offset a multiple of the alignment
//! ```
//!
//! Numbers are little endian; a string is a u64 length and that many bytes, without terminator.
//! The reference is `ggml/src/gguf.cpp` of the pinned llama.cpp.
//!
//! Modules in reading order:
//!
//! * `value`: metadata values and their ordered map.
//! * `ggml_type`: the element types, their block sizes and names.
//! * `error`: why a header is refused.
//! * `read`: header reader; starts with its limits.
//! * `source`: the bounded byte source below the reader.
//! * `write`: header encoder and streaming file writer.
//! * `layout`: one virtual file made of one or several real ones.

mod error;
mod ggml_type;
mod layout;
mod read;
mod source;
mod value;
mod write;

pub use error::{ReadError, TensorProblem};
pub use ggml_type::GgmlType;
pub use layout::{Extent, LayoutError, Piece, VirtualLayout, rewrite_header};
pub use read::{GgufHeader, Limits, TensorInfo};
pub use value::{GgufString, MetaArray, MetaValue, Metadata, StringArray};
pub use write::{EncodedHeader, GgufWriter, TensorDesc, WriteError, encode_header};

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
