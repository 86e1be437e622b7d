//! What a text must look like, beside `response_format`: fields of llama.cpp's server and of vLLM.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// What the whole text must be. One field at most, and none beside a `response_format`.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct FormFields {
    /// A grammar: GBNF as llama.cpp has it, or Lark as llguidance has it.
    pub grammar: Option<String>,
    /// A regular expression in Rust's syntax, without looking around.
    pub regex: Option<String>,
    /// vLLM's field for the same.
    #[serde(default, deserialize_with = "super::common::object")]
    pub structured_outputs: Option<StructuredOutputs>,
    /// Its older name for `regex`.
    pub guided_regex: Option<String>,
    /// Its older name for `choice`.
    pub guided_choice: Option<Vec<String>>,
}

/// One of these.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct StructuredOutputs {
    /// A JSON schema.
    #[schema(value_type = Option<Object>)]
    pub json: Option<Value>,
    pub regex: Option<String>,
    /// Texts, of which the answer is one.
    pub choice: Option<Vec<String>>,
    pub grammar: Option<String>,
}
