//! `/v1/responses`: OpenAI's newer shapes of a conversation.
//!
//! * `request`: what is asked. `answer`: what is returned. `event`: pieces of a stream.

mod answer;
mod event;
mod request;

pub use answer::{
    AnswerItem, AnswerPart, AnswerReasoning, AnswerStatus, AnswerText, DeletedResponse,
    IncompleteDetails, InputTokens, OutputTokens, ResponseError, ResponseObject, ResponsesUsage,
};
pub use event::{EventFields, ResponsesEvent};
pub use request::{
    InputItem, ItemContent, ItemPart, ReasoningOptions, ResponsesInput, ResponsesRequest,
    ResponsesTool, ResponsesToolChoice, TextFormat, TextOptions,
};
