//! What a header says that llama.cpp must not be told.

use crate::error::SpecError;
use crate::gguf::GgmlType;

/// Why a header's values are refused. Texts of the file are shown escaped and cut.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A key is missing or holds no count.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A value outside of what is allowed.
    #[error("metadata key {key:?} is {value}; allowed: {allowed}")]
    Value {
        key: String,
        /// As people read it.
        value: String,
        allowed: String,
    },
    /// Two counts that do not go together.
    #[error("layer {layer}: {heads} heads are not a multiple of {kv_heads} key/value heads")]
    Heads { layer: u32, heads: u64, kv_heads: u64 },
    /// A list that is missing, or of another type.
    #[error("metadata key {key:?} is not a list of {wanted}")]
    List { key: &'static str, wanted: &'static str },
    /// A list with fewer elements than there are tokens.
    #[error("metadata key {key:?} has {len} elements for {tokens} tokens")]
    Short { key: &'static str, len: usize, tokens: usize },
    /// A tokenizer with which no text can become tokens.
    #[error("tokenizer.ggml.model is {model:?}, which cannot read text; known: {known}")]
    Tokenizer { model: String, known: String },
    /// Two tokens of the same text.
    #[error("tokens {first} and {second} are both {text:?}; each needs a text of its own")]
    SameToken { first: usize, second: usize, text: String },
    /// A token beyond [`super::MAX_TOKEN_BYTES`].
    #[error("token {token} has {len} bytes, more than the limit of {limit}")]
    LongToken { token: usize, len: usize, limit: usize },
    /// Norms and biases are added and multiplied, which takes real numbers.
    #[error("tensor {tensor:?} is of type {ty}; norms and biases are F32, F16 or BF16")]
    TensorType { tensor: String, ty: GgmlType },
}

/// Most characters of a file's text in a message.
const SHOWN_CHARS: usize = 60;

/// A text of the file, for a message; the message escapes it.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let cut: String = text.chars().take(SHOWN_CHARS).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}
