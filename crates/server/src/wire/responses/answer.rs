//! What `/v1/responses` returns, whole.

use super::request::{ReasoningOptions, ResponsesTool, ResponsesToolChoice, TextOptions};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A response.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ResponseObject {
    pub id: String,
    /// Always `response`.
    pub object: &'static str,
    /// Unix seconds.
    pub created_at: u64,
    pub status: AnswerStatus,
    pub error: Option<ResponseError>,
    pub incomplete_details: Option<IncompleteDetails>,
    pub instructions: Option<String>,
    pub max_output_tokens: Option<u32>,
    pub model: String,
    pub output: Vec<AnswerItem>,
    /// Always true: a model may call several functions in one answer.
    pub parallel_tool_calls: bool,
    pub previous_response_id: Option<String>,
    pub reasoning: ReasoningOptions,
    pub store: bool,
    pub temperature: f32,
    pub text: TextOptions,
    #[schema(value_type = ResponsesToolChoice)]
    pub tool_choice: Value,
    pub tools: Vec<ResponsesTool>,
    pub top_p: f32,
    /// Always `disabled`: a prompt that is too long is refused.
    pub truncation: &'static str,
    /// Absent before the end.
    pub usage: Option<ResponsesUsage>,
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

/// How far a response or an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStatus {
    InProgress,
    Completed,
    /// As long as it may get.
    Incomplete,
    Failed,
}

/// Why a response failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ResponseError {
    pub code: &'static str,
    pub message: String,
}

/// Why a response is not whole.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct IncompleteDetails {
    /// Always `max_output_tokens`.
    pub reason: &'static str,
}

/// An item of the answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AnswerItem {
    /// Thoughts.
    Reasoning {
        id: String,
        status: AnswerStatus,
        /// Always empty: thoughts are returned as they are.
        summary: Vec<AnswerPart>,
        content: Vec<AnswerPart>,
    },
    /// Text.
    Message {
        id: String,
        status: AnswerStatus,
        /// Always `assistant`.
        role: &'static str,
        content: Vec<AnswerPart>,
    },
    /// A call of a function.
    FunctionCall {
        id: String,
        status: AnswerStatus,
        /// Names the call in its output.
        call_id: String,
        name: String,
        /// JSON, as text.
        arguments: String,
    },
}

/// A part of an item.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AnswerPart {
    OutputText(AnswerText),
    ReasoningText(AnswerReasoning),
}

/// Text of the answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AnswerText {
    pub text: String,
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    pub annotations: [(); 0],
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    pub logprobs: [(); 0],
}

/// Text of thoughts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AnswerReasoning {
    pub text: String,
}

/// Tokens of a request.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct ResponsesUsage {
    pub input_tokens: usize,
    pub input_tokens_details: InputTokens,
    pub output_tokens: usize,
    pub output_tokens_details: OutputTokens,
    pub total_tokens: usize,
}

/// More about a prompt's tokens.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct InputTokens {
    /// Tokens that an earlier request had computed already.
    pub cached_tokens: usize,
}

/// More about an answer's tokens.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct OutputTokens {
    /// Always 0: thoughts are not counted apart.
    pub reasoning_tokens: usize,
}

/// A response that is no longer kept.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DeletedResponse {
    pub id: String,
    /// Always `response`.
    pub object: &'static str,
    /// Always true.
    pub deleted: bool,
}
