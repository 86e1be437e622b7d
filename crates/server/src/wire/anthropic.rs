//! `/v1/messages` and `/v1/messages/count_tokens`: Anthropic's shapes of a conversation. Fields
//! that are not named here are accepted and change nothing, `cache_control` among them.

use super::common::object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A request to answer a conversation, as Anthropic's API has it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct MessagesRequest {
    /// Most tokens of the answer.
    #[schema(minimum = 1)]
    pub max_tokens: u32,
    #[serde(flatten)]
    pub conversation: AnthropicConversation,
    /// Strings that end the answer.
    #[schema(max_items = 16)]
    pub stop_sequences: Option<Vec<String>>,
    /// 0 takes the most likely token; 1 when absent.
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f32>,
    /// Keep the smallest set of tokens that reaches this probability.
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f32>,
    /// Keep so many of the most likely tokens.
    pub top_k: Option<u32>,
    /// Send server-sent events.
    pub stream: Option<bool>,
    /// Changes nothing.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
}

/// What a prompt is made of; the whole request of `/v1/messages/count_tokens`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct AnthropicConversation {
    /// Any name: one model is served. With `--strict-model` its own name, or none.
    pub model: Option<String>,
    #[schema(min_items = 1)]
    pub messages: Vec<AnthropicMessage>,
    pub system: Option<AnthropicText>,
    pub tools: Option<Vec<AnthropicTool>>,
    #[serde(default, deserialize_with = "object")]
    pub tool_choice: Option<AnthropicToolChoice>,
    #[serde(default, deserialize_with = "object")]
    pub thinking: Option<Thinking>,
    #[serde(default, deserialize_with = "object")]
    pub output_config: Option<OutputConfig>,
}

/// One turn.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct AnthropicMessage {
    pub role: AnthropicRole,
    pub content: AnthropicContent,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnthropicRole {
    User,
    Assistant,
    System,
}

/// Content of a turn.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum AnthropicContent {
    Text(String),
    Blocks(Vec<InputBlock>),
}

/// A part of a turn.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct InputBlock {
    /// `text`, `tool_use`, `tool_result`, `thinking` or `redacted_thinking`; others are refused.
    pub r#type: String,
    /// Of `text`.
    pub text: Option<String>,
    /// Of `tool_use`: a call the model made.
    pub id: Option<String>,
    pub name: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub input: Option<Map<String, Value>>,
    /// Of `tool_result`: what that call returned.
    pub tool_use_id: Option<String>,
    pub content: Option<AnthropicText>,
    /// Of `thinking`: thoughts of an earlier turn, for templates that show them again.
    pub thinking: Option<String>,
}

/// Text, or blocks of text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum AnthropicText {
    Text(String),
    Blocks(Vec<TextBlock>),
}

/// A block of text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct TextBlock {
    /// `text`; others are refused.
    pub r#type: String,
    pub text: Option<String>,
}

/// A function the model may call.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct AnthropicTool {
    /// `custom`, or none; tools that the server would have to run are refused.
    pub r#type: Option<String>,
    pub name: String,
    pub description: Option<String>,
    /// JSON schema of its arguments.
    #[schema(value_type = Option<Object>)]
    pub input_schema: Option<Map<String, Value>>,
}

/// Which tools may be called. `disable_parallel_tool_use` changes nothing: a forced call is one
/// call, and others are the model's to choose.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct AnthropicToolChoice {
    /// `auto`, `none`, `any` (one must be called) or `tool` (this one must be).
    pub r#type: String,
    /// Of `tool`.
    pub name: Option<String>,
}

/// Whether the model thinks first: the template's variable `enable_thinking`. A budget changes
/// nothing.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Thinking {
    /// `enabled` or `disabled`; with `adaptive` and `between_tools` the template is not told.
    pub r#type: String,
}

/// How the answer looks and how much is thought about it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OutputConfig {
    /// Passed to the template as `reasoning_effort`.
    pub effort: Option<String>,
    #[serde(default, deserialize_with = "object")]
    pub format: Option<OutputSchema>,
}

/// JSON of a schema.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct OutputSchema {
    /// Always `json_schema`.
    pub r#type: String,
    #[schema(value_type = Object)]
    pub schema: Map<String, Value>,
}

/// The answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MessagesResponse {
    pub id: String,
    /// Always `message`.
    pub r#type: &'static str,
    /// Always `assistant`.
    pub role: &'static str,
    pub model: String,
    pub content: Vec<OutputBlock>,
    /// `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`; null at the beginning of a stream.
    pub stop_reason: Option<&'static str>,
    /// Which stop string came.
    pub stop_sequence: Option<String>,
    pub usage: AnthropicUsage,
}

/// A part of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputBlock {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        /// Always empty: thoughts are not signed.
        signature: &'static str,
    },
    ToolUse {
        id: String,
        name: String,
        #[schema(value_type = Object)]
        input: Map<String, Value>,
    },
}

/// Tokens of a request. A prompt has `input_tokens` and `cache_read_input_tokens` together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct AnthropicUsage {
    /// Tokens of the prompt that were computed for it.
    pub input_tokens: usize,
    /// Those that an earlier request had computed already.
    pub cache_read_input_tokens: usize,
    /// Always 0: what is kept for others costs nothing.
    pub cache_creation_input_tokens: usize,
    pub output_tokens: usize,
}

/// Tokens of a prompt.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct TokenCount {
    pub input_tokens: usize,
}

/// A piece of a stream; its `type` is also the event's name.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagesEvent {
    MessageStart { message: MessagesResponse },
    ContentBlockStart { index: usize, content_block: OutputBlock },
    ContentBlockDelta { index: usize, delta: BlockDelta },
    ContentBlockStop { index: usize },
    MessageDelta { delta: MessageEnd, usage: AnthropicUsage },
    MessageStop,
}

/// What an event adds to a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockDelta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    /// More of a call's arguments, as JSON.
    InputJsonDelta {
        partial_json: String,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MessageEnd {
    pub stop_reason: Option<&'static str>,
    pub stop_sequence: Option<String>,
}

/// The body of an error, as Anthropic's API has it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AnthropicErrorBody {
    /// Always `error`.
    pub r#type: &'static str,
    pub error: AnthropicError,
}

/// What went wrong.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AnthropicError {
    /// `invalid_request_error`, `authentication_error`, `overloaded_error`, …
    pub r#type: &'static str,
    pub message: String,
}

/// One event of a stream as it is sent, for the OpenAPI document.
#[derive(Debug, Serialize, ToSchema)]
pub struct NamedEvent {
    /// The `type` in its data, on the routes that name their events.
    pub event: Option<String>,
    /// JSON, or `[DONE]` where events have no names.
    pub data: String,
}
