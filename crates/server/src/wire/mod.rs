//! The API's types, as clients write and read them. No behaviour beyond defaults.
//!
//! * `chat`, `completion`: requests, responses and chunks of one route each.
//! * `common`: what both share: sampling, usage, log-probabilities.

mod chat;
mod common;
mod completion;

pub use chat::{
    ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, ChatRequest, ChatResponse, Content,
    Function, FunctionCall, LogprobContent, LogprobList, Message, ResponseFormat, ResponseMessage,
    Role, Schema, TextPart, Tool, ToolCall, ToolCallDelta, ToolChoice, TopLogprob,
};
pub use common::{Model, ModelList, SamplingFields, Stop, StreamOptions, Usage, UsageDetails};
pub use completion::{
    CompletionChoice, CompletionLogprobs, CompletionPrompt, CompletionRequest, CompletionResponse,
};
