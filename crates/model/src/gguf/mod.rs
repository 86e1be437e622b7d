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
//! * `format`: the fixed numbers; `limits`: what a header may ask for.
//! * `value`: metadata values and their ordered map.
//! * `ggml_type`: the element types, their block sizes and names.
//! * `error`: why a header is refused.
//! * `read`: header reader.
//! * `source`: the bounded byte source below the reader.
//! * `write`: header encoder and streaming file writer.
//! * `layout`: one virtual file over one or several real ones.

mod error;
mod format;
mod ggml_type;
mod layout;
mod limits;
mod read;
mod source;
mod value;
mod write;

pub use error::{ReadError, TensorProblem};
pub use format::{
    ALIGNMENT_KEY, DEFAULT_ALIGNMENT_BYTES, MAGIC, MAX_DIMS, MAX_TENSOR_NAME_BYTES, VERSION,
};
pub use ggml_type::GgmlType;
pub use layout::{Extent, LayoutError, Piece, VirtualLayout, rewrite_header};
pub use limits::GgufLimits;
pub use read::{GgufHeader, TensorInfo};
pub use value::{GgufString, MetaArray, MetaValue, Metadata, StringArray};
pub use write::{EncodedHeader, GgufWriter, TensorDesc, WriteError, encode_header};
