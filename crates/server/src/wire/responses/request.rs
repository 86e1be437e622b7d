//! What is asked of `/v1/responses`. Fields that are not named here are accepted and change
//! nothing.

use super::super::common::object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A request to answer a conversation, as OpenAI's newer API has it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ResponsesRequest {
    /// Any name: one model is served. With `--strict-model` its own name, or none.
    pub model: Option<String>,
    pub input: ResponsesInput,
    /// The system prompt of this answer; not that of those that continue it.
    pub instructions: Option<String>,
    /// Continue the conversation of this response, while it is kept.
    pub previous_response_id: Option<String>,
    /// Keep the response and its conversation for a while; true when absent.
    pub store: Option<bool>,
    pub tools: Option<Vec<ResponsesTool>>,
    /// `none`, `auto`, `required`, or one function by name.
    #[schema(value_type = Option<ResponsesToolChoice>)]
    pub tool_choice: Option<Value>,
    /// Most tokens of the answer.
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u32>,
    /// 0 takes the most likely token; 1 when absent.
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f32>,
    /// Keep the smallest set of tokens that reaches this probability.
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f32>,
    #[serde(default, deserialize_with = "object")]
    pub text: Option<TextOptions>,
    #[serde(default, deserialize_with = "object")]
    pub reasoning: Option<ReasoningOptions>,
    /// Send server-sent events.
    pub stream: Option<bool>,
    /// Returned as it is.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// Not supported: refused when true.
    pub background: Option<bool>,
    /// Not supported: refused when given. `previous_response_id` continues.
    pub conversation: Option<Value>,
    /// Not supported: refused when given.
    pub prompt: Option<Value>,
}

/// Text of the user, or items of a conversation.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ResponsesInput {
    Text(String),
    Items(Vec<InputItem>),
}

/// An item of a conversation.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct InputItem {
    /// `message` (when absent), `function_call`, `function_call_output` or `reasoning`.
    pub r#type: Option<String>,
    /// Of a message.
    pub role: Option<String>,
    /// Of a message or of thoughts.
    pub content: Option<ItemContent>,
    /// Of thoughts, where they have no content.
    pub summary: Option<Vec<ItemPart>>,
    /// Of a call and of its output.
    pub call_id: Option<String>,
    /// The function that is called.
    pub name: Option<String>,
    /// Of a call: JSON, as text.
    pub arguments: Option<String>,
    /// What a call returned.
    pub output: Option<ItemContent>,
}

/// Text, or parts of text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ItemContent {
    Text(String),
    Parts(Vec<ItemPart>),
}

/// A part: `input_text`, `output_text`, `text`, `reasoning_text` or `summary_text`; others are
/// refused.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ItemPart {
    pub r#type: String,
    pub text: Option<String>,
}

/// A function the model may call.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResponsesTool {
    /// `function`; tools that the server would have to run are refused.
    pub r#type: String,
    pub name: Option<String>,
    pub description: Option<String>,
    /// JSON schema of its arguments.
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
    /// Changes nothing: forced calls follow their schema, others are the model's to write.
    pub strict: Option<bool>,
}

/// Values of `tool_choice`, for the OpenAPI document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ResponsesToolChoice {
    /// `none`, `auto` or `required`.
    Word(String),
    Function {
        name: String,
    },
}

/// How the text of the answer looks.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TextOptions {
    #[serde(default, deserialize_with = "object")]
    pub format: Option<TextFormat>,
}

/// Required form of the text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TextFormat {
    /// `text`, `json_object` (any) or `json_schema` (JSON of this schema).
    pub r#type: String,
    /// Changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of `json_schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Map<String, Value>>,
}

/// How much is thought.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReasoningOptions {
    /// Passed to the template as `reasoning_effort`; `none` also as `enable_thinking: false`.
    pub effort: Option<String>,
}
