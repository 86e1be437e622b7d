//! `/tokenize` and `/detokenize`: llama.cpp's shapes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A text to be made into tokens.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct TokenizeRequest {
    pub content: String,
    /// With the model's beginning token; false when absent.
    pub add_special: Option<bool>,
    /// Control tokens written in the text are such tokens; true when absent.
    pub parse_special: Option<bool>,
    /// Each token with its text.
    pub with_pieces: Option<bool>,
}

/// The tokens.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TokenizeResponse {
    pub tokens: Vec<TokenizedToken>,
}

/// A token, alone or with its text.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TokenizedToken {
    Id(i32),
    WithPiece { id: i32, piece: TokenPiece },
}

/// A token's text, or its bytes where they are no text of their own.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TokenPiece {
    Text(String),
    Bytes(Vec<u8>),
}

/// Tokens to be made into text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct DetokenizeRequest {
    pub tokens: Vec<i32>,
}

/// The text; bytes that are none are replaced.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DetokenizeResponse {
    pub content: String,
}
