//! `/v1/embeddings`, in OpenAI's shapes, and `/v1/rerank`, in those that Jina, Cohere and llama.cpp's
//! server share.

use super::completion::Prompts;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Texts whose vectors are wanted.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct EmbeddingsRequest {
    /// Any name: one model is served. With `--strict-model` its own name, or none.
    pub model: Option<String>,
    /// At most 2048. Control tokens written in them are text.
    pub input: Prompts,
    /// How vectors are written; as numbers when absent.
    pub encoding_format: Option<EmbeddingEncoding>,
    /// Only the first so many numbers of each, scaled to length 1 again: for models that were made
    /// for it.
    #[schema(minimum = 1)]
    pub dimensions: Option<u32>,
}

/// How a vector is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingEncoding {
    Float,
    /// Its numbers as 32-bit floats, least byte first.
    Base64,
}

/// The vectors.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EmbeddingsResponse {
    /// Always `list`.
    pub object: &'static str,
    /// In the order of the texts.
    pub data: Vec<EmbeddedText>,
    pub model: String,
    pub usage: TextsUsage,
}

/// A text's vector.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EmbeddedText {
    /// Always `embedding`.
    pub object: &'static str,
    /// Of the text in `input`.
    pub index: usize,
    pub embedding: EmbeddingVector,
}

/// A vector of length 1.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum EmbeddingVector {
    Float(Vec<f32>),
    Base64(String),
}

/// Tokens of a request that gets no text.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct TextsUsage {
    pub prompt_tokens: usize,
    pub total_tokens: usize,
}

/// Texts to be put in the order in which they answer a query.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct RerankRequest {
    /// Any name: one model is served. With `--strict-model` its own name, or none.
    pub model: Option<String>,
    pub query: String,
    /// At most 2048. Control tokens written in them are text.
    pub documents: Vec<RerankDocument>,
    /// Only the best so many; all when absent.
    #[schema(minimum = 1)]
    pub top_n: Option<u32>,
    /// Write each text beside its score; false when absent.
    pub return_documents: Option<bool>,
}

/// A text, alone or in an object.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum RerankDocument {
    Text(String),
    Object { text: String },
}

impl RerankDocument {
    /// The text itself.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Object { text } => text,
        }
    }
}

/// The texts, best first.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RerankResponse {
    /// Always `list`.
    pub object: &'static str,
    pub model: String,
    pub results: Vec<RankedText>,
    pub usage: TextsUsage,
}

/// A text's score.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RankedText {
    /// Of the text in `documents`.
    pub index: usize,
    /// As the model has it: some between 0 and 1, others of any size.
    pub relevance_score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<RerankDocument>,
}
