//! The API's types, as clients write and read them. No behaviour beyond defaults.
//!
//! * `chat`, `completion`: the two ways to ask, with their answers and chunks.
//! * `common`: what both share: sampling, usage, log-probabilities.

mod chat;
mod common;
mod completion;

pub use chat::{
    AnswerMessage, ChatAnswer, ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, ChatRequest,
    Content, Function, FunctionCall, LogprobContent, LogprobList, Message, ResponseFormat, Role,
    Schema, TextPart, Tool, ToolCall, ToolCallDelta, ToolChoice, TopLogprob,
};
pub use common::{Model, ModelList, SamplingFields, Stop, StreamOptions, Usage, UsageDetails};
pub use completion::{
    CompletionAnswer, CompletionChoice, CompletionLogprobs, CompletionPrompt, CompletionRequest,
};
