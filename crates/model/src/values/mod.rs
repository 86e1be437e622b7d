//! Whether the values of a header are such that llama.cpp goes on. It ends the whole process on
//! some (`GGML_ASSERT`), and on these only: what it refuses with a message of its own is left to
//! it, and what depends on an architecture's graph to the child that loads a file first.
//!
//! * `error`: what was found.
//! * `numbers`: layers, heads, experts, epsilons, rotary embedding.
//! * `vocabulary`: the tokenizer and its tokens.
//! * `tensors`: element types that no operation takes.

mod error;
mod numbers;
mod tensors;
mod vocabulary;

pub use error::ValueError;
pub use numbers::MAX_WIDTH;
pub use vocabulary::MAX_TOKEN_BYTES;

use crate::error::SpecError;
use crate::gguf::GgufHeader;
use crate::keys::Keys;

/// Refuses values on which llama.cpp would end the process: whoever hands files of these headers
/// to it calls this first.
pub fn check_values(headers: &[GgufHeader]) -> Result<(), ValueError> {
    let metadata = &headers.first().ok_or(SpecError::Empty)?.metadata;
    numbers::check(&Keys::new(metadata)?, metadata)?;
    vocabulary::check(metadata)?;
    tensors::check(headers)
}
