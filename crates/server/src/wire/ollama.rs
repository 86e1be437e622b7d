//! `/api/…`: Ollama's shapes. Fields that are not named here are accepted and change nothing,
//! `num_ctx` among them: the server's context is given when it starts.

use super::chat::Tool;
use super::common::{Stop, object};
use super::completion::Prompts;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A request to answer a conversation. Without messages nothing is computed: the model is loaded.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OllamaChatRequest {
    #[serde(default)]
    pub messages: Vec<OllamaMessage>,
    pub tools: Option<Vec<Tool>>,
    #[serde(flatten)]
    pub common: OllamaFields,
}

/// A request to answer or to continue a text. Without a prompt nothing is computed: the model is
/// loaded.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OllamaGenerateRequest {
    #[serde(default)]
    pub prompt: String,
    pub system: Option<String>,
    /// Continue the prompt as it is, without the model's template.
    pub raw: Option<bool>,
    /// Not supported: refused when it is not empty.
    pub suffix: Option<String>,
    /// Not supported: refused when it is not empty.
    pub template: Option<String>,
    /// Not supported: refused when it is not empty.
    pub context: Option<Vec<i32>>,
    /// Not supported: refused when it is not empty.
    pub images: Option<Vec<String>>,
    #[serde(flatten)]
    pub common: OllamaFields,
}

/// Texts whose vectors are wanted.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OllamaEmbedRequest {
    /// Any name where one model is served; with `--strict-model`, or of several, its own.
    pub model: Option<String>,
    /// At most 2048. Without one nothing is computed: the model is loaded.
    pub input: Option<Prompts>,
    /// Cut texts that are too long for the model, in place of refusing them; true when absent.
    pub truncate: Option<bool>,
    /// Only the first so many numbers of each vector, scaled to length 1 again.
    #[schema(minimum = 1)]
    pub dimensions: Option<u32>,
    /// How long the model stays loaded after this: seconds, or a time such as `10m`; below 0 until
    /// another needs its memory.
    pub keep_alive: Option<Value>,
}

/// Vectors of length 1, in the order of the texts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OllamaEmbeddings {
    pub model: String,
    pub embeddings: Vec<Vec<f32>>,
    #[serde(flatten)]
    pub counts: OllamaCounts,
}

/// What both have.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OllamaFields {
    /// Any name where one model is served; with `--strict-model`, or of several, its own.
    pub model: Option<String>,
    /// Send one JSON value a line; true when absent.
    pub stream: Option<bool>,
    /// `json` for any object, or a JSON schema.
    #[schema(value_type = Option<OllamaFormat>)]
    pub format: Option<Value>,
    /// Whether to think, or how much: `low`, `medium`, `high`.
    pub think: Option<Think>,
    #[serde(default, deserialize_with = "object")]
    pub options: Option<OllamaOptions>,
    /// How long the model stays loaded after this: seconds, or a time such as `10m`; below 0 until
    /// another needs its memory.
    pub keep_alive: Option<Value>,
}

/// How tokens are chosen.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct OllamaOptions {
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f32>,
    #[schema(minimum = 0, maximum = 1)]
    pub min_p: Option<f32>,
    /// Most tokens of the answer; below 0 as many as fit.
    pub num_predict: Option<i32>,
    pub stop: Option<Stop>,
    pub seed: Option<i64>,
    #[schema(minimum = 0.1, maximum = 10)]
    pub repeat_penalty: Option<f32>,
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: Option<f32>,
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: Option<f32>,
}

/// Values of `format`, for the OpenAPI document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum OllamaFormat {
    /// `json`, or empty for none.
    Word(String),
    #[schema(value_type = Object)]
    Schema(Map<String, Value>),
}

/// Whether to think, or how much.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Think {
    /// The template's variable `enable_thinking`.
    Switch(bool),
    /// Its variable `reasoning_effort`.
    Effort(String),
}

/// One turn.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OllamaMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    pub content: Option<String>,
    pub thinking: Option<String>,
    pub tool_calls: Option<Vec<OllamaCall>>,
    /// Whose result a `tool` turn is.
    pub tool_name: Option<String>,
    /// Not supported: refused when it is not empty.
    pub images: Option<Vec<String>>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OllamaCall {
    pub function: OllamaFunction,
}

/// A function's name and its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OllamaFunction {
    pub name: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

/// An answer, or a piece of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OllamaAnswer {
    pub model: String,
    /// RFC 3339.
    pub created_at: String,
    /// Of `/api/chat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<OllamaSaid>,
    /// Of `/api/generate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// Of `/api/generate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Whether it is the last piece.
    pub done: bool,
    /// `stop`, `length` or `load`; with the last piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_reason: Option<&'static str>,
    #[serde(flatten)]
    pub counts: OllamaCounts,
}

/// What the assistant says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct OllamaSaid {
    /// Always `assistant`.
    pub role: &'static str,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<OllamaCall>,
}

/// Tokens and measured nanoseconds, with the last piece.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct OllamaCounts {
    /// From the checked request to the end of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_duration: Option<u64>,
    /// Always 0: the model is loaded before the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_eval_count: Option<usize>,
    /// From the first work on the prompt to the first token; not the time in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_eval_duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_count: Option<usize>,
    /// From the first token to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_duration: Option<u64>,
}

/// The models that are served: one.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OllamaModels {
    pub models: Vec<OllamaModel>,
}

/// A model.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OllamaModel {
    pub name: String,
    /// The same.
    pub model: String,
    /// When the server loaded it: RFC 3339.
    pub modified_at: String,
    /// Bytes of its tensors.
    pub size: u64,
    /// Always empty: no digest is computed of a file that is served.
    pub digest: &'static str,
    pub details: OllamaDetails,
    /// Most tokens of a prompt and its answer together.
    pub context_length: u32,
}

/// What a model is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OllamaDetails {
    /// Always empty.
    pub parent_model: &'static str,
    /// Always `gguf`.
    pub format: &'static str,
    /// llama.cpp's name of the architecture.
    pub family: String,
    pub families: Vec<String>,
    /// Such as `30.5B`.
    pub parameter_size: String,
    /// The type that most bytes of its experts have.
    pub quantization_level: String,
}

/// A question about the model.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OllamaShowRequest {
    /// Any name where one model is served; with `--strict-model`, or of several, its own.
    pub model: Option<String>,
    /// The same under its older name.
    pub name: Option<String>,
}

/// All about the model.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OllamaShow {
    pub modified_at: String,
    /// The model's own chat template, in Jinja.
    pub template: String,
    pub details: OllamaDetails,
    #[schema(value_type = Object)]
    pub model_info: Map<String, Value>,
    /// `completion`, and `tools` and `thinking` where the template has a place for them.
    pub capabilities: Vec<&'static str>,
}

/// The server's version; not one of Ollama's.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OllamaVersion {
    pub version: &'static str,
}

/// The body of an error, as Ollama has it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OllamaError {
    pub error: String,
}
