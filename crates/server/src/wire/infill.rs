//! llama.cpp's `/infill`: what belongs into the gap of a text.

use super::common::SamplingFields;
use super::form::FormFields;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request to fill a gap.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct InfillRequest {
    /// Any name: one model is served. With `--strict-model` its own name, or none.
    pub model: Option<String>,
    /// Text before the gap.
    pub input_prefix: String,
    /// Text after the gap.
    pub input_suffix: String,
    /// More text before the gap: what was typed since `input_prefix`.
    pub prompt: Option<String>,
    /// Most tokens; -1 or absent is as many as the context has room for.
    #[schema(minimum = -1)]
    pub n_predict: Option<i64>,
    #[serde(flatten)]
    pub form: FormFields,
    #[serde(flatten)]
    pub sampling: SamplingFields,
}

/// What belongs into the gap; also each piece of a stream.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct InfillResponse {
    /// Always 0: there is one answer.
    pub index: usize,
    pub content: String,
    /// Whether nothing follows.
    pub stop: bool,
    pub model: String,
    /// Generated tokens, at the end.
    pub tokens_predicted: usize,
    /// Tokens of the prompt, at the end.
    pub tokens_evaluated: usize,
    /// At the end: `eos`, `limit` or `word`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_type: Option<&'static str>,
    /// At the end: the stop string that came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopping_word: Option<String>,
}
