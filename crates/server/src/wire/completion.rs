//! `/v1/completions`: text to be continued.

use super::common::{SamplingFields, Usage};
use super::form::FormFields;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request to continue text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct CompletionRequest {
    /// Any name: one model is served. With `--strict-model` its own name, or none.
    pub model: Option<String>,
    pub prompt: Prompts,
    /// Most tokens of a choice; 16 when absent, as in OpenAI's API.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u32>,
    /// Log-probabilities with so many alternatives.
    #[schema(maximum = 20)]
    pub logprobs: Option<u32>,
    /// Begin the choice with the prompt.
    pub echo: Option<bool>,
    /// What follows the text that is asked for. Needs a model with tokens for gaps, and prompts as text.
    pub suffix: Option<String>,
    /// Not supported beyond `n`.
    pub best_of: Option<u32>,
    #[serde(flatten)]
    pub form: FormFields,
    #[serde(flatten)]
    pub sampling: SamplingFields,
}

/// One prompt or several, as text or as tokens.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Prompts {
    Text(String),
    Texts(Vec<String>),
    /// One prompt's tokens.
    Tokens(Vec<i32>),
    /// Several prompts' tokens.
    TokenLists(Vec<Vec<i32>>),
}

/// The choices; also each chunk of a stream.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CompletionResponse {
    pub id: String,
    /// Always `text_completion`.
    pub object: &'static str,
    /// Unix seconds.
    pub created: u64,
    pub model: String,
    /// Prompt by prompt.
    pub choices: Vec<CompletionChoice>,
    /// Token counts; in a stream only in the last chunk, and only when requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// One choice, or a piece of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CompletionChoice {
    pub index: usize,
    pub text: String,
    pub logprobs: Option<CompletionLogprobs>,
    /// `stop` or `length`; absent before the end.
    pub finish_reason: Option<&'static str>,
}

/// Log-probabilities, one entry per token.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct CompletionLogprobs {
    /// Texts of the tokens.
    pub tokens: Vec<String>,
    /// Natural logarithms of their probabilities.
    pub token_logprobs: Vec<f32>,
    /// The likeliest alternatives.
    pub top_logprobs: Vec<BTreeMap<String, f32>>,
    /// Where each token begins in the text, in bytes.
    pub text_offset: Vec<usize>,
}
