//! Pieces of a stream of `/v1/responses`.

use super::answer::{AnswerItem, AnswerPart, ResponseObject};
use serde::Serialize;
use utoipa::ToSchema;

/// A piece of a stream; its `type` is also the event's name.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ResponsesEvent {
    /// `response.created`, `response.output_text.delta`, …
    pub r#type: &'static str,
    /// Counted from 0.
    pub sequence_number: u64,
    #[serde(flatten)]
    pub fields: EventFields,
}

/// What a piece is about.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum EventFields {
    /// The whole response.
    Response { response: Box<ResponseObject> },
    /// An item that begins or is complete.
    Item { output_index: usize, item: AnswerItem },
    /// A part of an item that begins or is complete.
    Part { item_id: String, output_index: usize, content_index: usize, part: AnswerPart },
    /// More of a text; `logprobs` is always empty, and absent for thoughts.
    Delta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Vec<Object>>)]
        logprobs: Option<[(); 0]>,
    },
    /// A text that is complete.
    Text {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Vec<Object>>)]
        logprobs: Option<[(); 0]>,
    },
    /// More of a call's arguments.
    ArgumentsDelta { item_id: String, output_index: usize, delta: String },
    /// Arguments that are complete.
    Arguments { item_id: String, output_index: usize, name: String, arguments: String },
}
