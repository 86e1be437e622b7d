//! `/v1/chat/completions`: a conversation to be answered.

use super::common::{SamplingFields, Usage};
use super::form::FormFields;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A request to answer a conversation.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct ChatRequest {
    /// Any name: one model is served. With `--strict-model` its own name, or none.
    pub model: Option<String>,
    #[schema(min_items = 1)]
    pub messages: Vec<Message>,
    /// Most tokens of a choice.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u32>,
    /// The same under its newer name.
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<u32>,
    /// Return log-probabilities of the generated tokens.
    pub logprobs: Option<bool>,
    /// Alternatives per token.
    #[schema(maximum = 20)]
    pub top_logprobs: Option<u32>,
    pub response_format: Option<ResponseFormat>,
    pub tools: Option<Vec<Tool>>,
    /// `none`, `auto`, `required`, or one function by name.
    #[schema(value_type = Option<ToolChoice>)]
    pub tool_choice: Option<Value>,
    /// Passed to the template.
    pub reasoning_effort: Option<String>,
    /// Further variables for the template, e.g. `enable_thinking`.
    #[schema(value_type = Option<Object>)]
    pub chat_template_kwargs: Option<Map<String, Value>>,
    #[serde(flatten)]
    pub form: FormFields,
    #[serde(flatten)]
    pub sampling: SamplingFields,
}

/// One turn of a conversation.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Message {
    #[schema(value_type = Role)]
    pub role: String,
    /// Text, or a list of text parts.
    #[schema(value_type = Option<Content>)]
    pub content: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub tool_calls: Option<Vec<Value>>,
    /// Thoughts of an earlier answer, for templates that show them again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The same under another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Which call a `tool` turn answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Name of the speaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Roles of a turn, for the OpenAPI document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    /// The same, under its newer name.
    Developer,
    User,
    Assistant,
    /// The result of a call.
    Tool,
    /// The same, under its older name.
    Function,
}

/// Content of a turn, for the OpenAPI document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    /// Concatenated.
    Parts(Vec<TextPart>),
}

/// A part of a turn.
#[derive(Debug, Deserialize, ToSchema)]
pub struct TextPart {
    /// Always `text`.
    pub r#type: String,
    pub text: String,
}

/// Values of `tool_choice`, for the OpenAPI document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ToolChoice {
    /// `none`, `auto` or `required`.
    Word(String),
    Function {
        /// `{"name": …}`.
        #[schema(value_type = Object)]
        function: Value,
    },
}

/// A function the model may call.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Tool {
    /// Always `function`.
    pub r#type: String,
    pub function: Function,
}

/// A function: its name, what it does, its arguments as a JSON schema.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Function {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
}

/// Required form of a choice.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON of this schema.
    JsonSchema {
        json_schema: Schema,
    },
}

/// A JSON schema; its name and `strict` change nothing here.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Schema {
    #[schema(value_type = Object)]
    pub schema: Value,
}

/// The response to a conversation.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChatResponse {
    pub id: String,
    /// Always `chat.completion`.
    pub object: &'static str,
    /// Unix seconds.
    pub created: u64,
    pub model: String,
    pub choices: Vec<ChatChoice>,
    pub usage: Usage,
}

/// One of the alternatives requested with `n`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChatChoice {
    pub index: usize,
    pub message: ResponseMessage,
    pub logprobs: Option<LogprobList>,
    /// `stop`, `length` or `tool_calls`.
    pub finish_reason: &'static str,
}

/// The assistant's message.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct ResponseMessage {
    /// Always `assistant`.
    pub role: &'static str,
    /// Null when it only calls functions.
    pub content: Option<String>,
    /// Thoughts of a reasoning model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolCall {
    pub id: String,
    /// Always `function`.
    pub r#type: &'static str,
    pub function: FunctionCall,
}

/// A function's name and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FunctionCall {
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

/// Log-probabilities of a choice.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct LogprobList {
    /// One entry per token.
    pub content: Vec<LogprobContent>,
}

/// One token's log-probability.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LogprobContent {
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// Its bytes: a character may be spread over several tokens.
    pub bytes: Vec<u8>,
    /// The most likely tokens at this position.
    pub top_logprobs: Vec<TopLogprob>,
}

/// A token that could have been generated.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TopLogprob {
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    pub bytes: Vec<u8>,
}

/// A piece of a stream.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChatChunk {
    pub id: String,
    /// Always `chat.completion.chunk`.
    pub object: &'static str,
    /// Unix seconds.
    pub created: u64,
    pub model: String,
    /// One, or none in the chunk with the token counts.
    pub choices: Vec<ChatChunkChoice>,
    /// In the last chunk, when requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A piece of one choice.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChatChunkChoice {
    pub index: usize,
    pub delta: ChatDelta,
    pub logprobs: Option<LogprobList>,
    /// `stop`, `length` or `tool_calls`; absent before the end.
    pub finish_reason: Option<&'static str>,
}

/// What a chunk adds to a choice.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct ChatDelta {
    /// In the first chunk only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// A call that begins, or more of its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallDelta>,
}

/// What a chunk adds to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolCallDelta {
    /// Number of the call in its choice.
    pub index: usize,
    /// Where the call begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function`, where the call begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<&'static str>,
    pub function: FunctionDelta,
}

/// What a chunk adds to a function's name and arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FunctionDelta {
    /// Where the call begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments: all pieces together are JSON. They lack their last brace where the call
    /// was cut off.
    pub arguments: String,
}
