//! `/v1/chat/completions`: a conversation to be answered.

use super::{SamplingFields, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A request to answer a conversation.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ChatRequest {
    /// The served model's name; may be left out.
    pub model: Option<String>,
    /// The conversation so far.
    #[schema(min_items = 1)]
    pub messages: Vec<Message>,
    /// Most tokens of an answer.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u32>,
    /// The same under its newer name.
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<u32>,
    /// Log-probabilities of the answer's tokens.
    pub logprobs: Option<bool>,
    /// With so many alternatives.
    #[schema(maximum = 20)]
    pub top_logprobs: Option<u32>,
    /// What the answer must look like.
    pub response_format: Option<ResponseFormat>,
    /// Functions the model may call.
    pub tools: Option<Vec<Tool>>,
    /// `none`, `auto`, `required`, or one function by name.
    #[schema(value_type = Option<ToolChoice>)]
    pub tool_choice: Option<Value>,
    /// Given to the template.
    pub reasoning_effort: Option<String>,
    /// Further variables for the template, e.g. `enable_thinking`.
    #[schema(value_type = Option<Object>)]
    pub chat_template_kwargs: Option<serde_json::Map<String, Value>>,
    /// How tokens are chosen.
    #[serde(flatten)]
    pub sampling: SamplingFields,
}

/// One turn of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// Who speaks.
    #[schema(value_type = Role)]
    pub role: String,
    /// Text, or a list of text parts.
    #[schema(value_type = Option<Content>)]
    pub content: Option<Value>,
    /// Calls the assistant made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub tool_calls: Option<Vec<Value>>,
    /// Which call a `tool` turn answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Who speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Roles a turn may have, as the document tells them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// How to behave.
    System,
    /// The same, under its newer name.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// What a call gave.
    Tool,
    /// The same, under its older name.
    Function,
}

/// What a turn may hold, as the document tells it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Content {
    /// Text.
    Text(String),
    /// Parts, put together.
    Parts(Vec<TextPart>),
}

/// A part of a turn.
#[derive(Debug, Deserialize, ToSchema)]
pub struct TextPart {
    /// Always `text`.
    pub r#type: String,
    /// The text.
    pub text: String,
}

/// How free the model is to call, as the document tells it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ToolChoice {
    /// `none`, `auto` or `required`.
    Word(String),
    /// One function.
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
    /// The function.
    pub function: Function,
}

/// A function: its name, what it does, its arguments as a JSON schema.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Value>,
}

/// What an answer must look like.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Anything.
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON of this schema.
    JsonSchema {
        /// The schema.
        json_schema: Schema,
    },
}

/// A JSON schema; its name and `strict` change nothing here.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Schema {
    /// The schema itself.
    #[schema(value_type = Object)]
    pub schema: Value,
}

/// The answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChatAnswer {
    /// Names the answer.
    pub id: String,
    /// Always `chat.completion`.
    pub object: &'static str,
    /// Unix seconds.
    pub created: u64,
    /// The served model.
    pub model: String,
    /// The answers.
    pub choices: Vec<ChatChoice>,
    /// Token counts.
    pub usage: Usage,
}

/// One answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChatChoice {
    /// Which.
    pub index: usize,
    /// What the assistant says.
    pub message: AnswerMessage,
    /// When asked for.
    pub logprobs: Option<LogprobList>,
    /// `stop`, `length` or `tool_calls`.
    pub finish_reason: &'static str,
}

/// What the assistant says.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct AnswerMessage {
    /// Always `assistant`.
    pub role: &'static str,
    /// Its text; null when it only calls functions.
    pub content: Option<String>,
    /// What it thought aloud, in models that do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls it makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolCall {
    /// Names the call.
    pub id: String,
    /// Always `function`.
    pub r#type: &'static str,
    /// What is called.
    pub function: FunctionCall,
}

/// A function's name and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FunctionCall {
    /// Its name.
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

/// Log-probabilities of an answer.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct LogprobList {
    /// One entry per token.
    pub content: Vec<LogprobContent>,
}

/// One token's log-probability.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LogprobContent {
    /// Its text.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// Its bytes: a character may be spread over several tokens.
    pub bytes: Vec<u8>,
    /// The likeliest tokens there.
    pub top_logprobs: Vec<TopLogprob>,
}

/// A token that could have been said.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TopLogprob {
    /// Its text.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A piece of a stream.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChatChunk {
    /// Names the answer.
    pub id: String,
    /// Always `chat.completion.chunk`.
    pub object: &'static str,
    /// Unix seconds.
    pub created: u64,
    /// The served model.
    pub model: String,
    /// One, or none in the chunk with the token counts.
    pub choices: Vec<ChatChunkChoice>,
    /// In the last chunk, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A piece of one answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChatChunkChoice {
    /// Which.
    pub index: usize,
    /// What is new.
    pub delta: ChatDelta,
    /// When asked for.
    pub logprobs: Option<LogprobList>,
    /// `stop`, `length` or `tool_calls`; absent while it goes on.
    pub finish_reason: Option<&'static str>,
}

/// What is new in an answer.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct ChatDelta {
    /// In the first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// More text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// More of what is thought aloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls, each whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallDelta>,
}

/// A call in a stream.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ToolCallDelta {
    /// Which of the answer's calls.
    pub index: usize,
    /// The call.
    #[serde(flatten)]
    pub call: ToolCall,
}
