//! `/v1/responses`: items that begin, grow and end; the whole response at both ends of a stream.

use super::formatter::{EventFormatter, Frame, Framing, random_id};
use super::parts::{Part, PartKind, Parts, Step};
use crate::clock::unix_s;
use crate::error::ApiError;
use crate::kept::{Kept, KeptResponse};
use crate::request::PreparedResponse;
use crate::wire::{
    AnswerItem, AnswerPart, AnswerReasoning, AnswerStatus, AnswerText, EventFields,
    IncompleteDetails, InputTokens, Message, OutputTokens, ReasoningOptions, ResponseError,
    ResponseObject, ResponsesEvent, ResponsesRequest, ResponsesUsage, TextFormat, TextOptions,
    Usage,
};
use motley_engine::batching::{Event, Reason};
use serde_json::{Value, json};
use std::sync::Arc;

/// Formats the answer to one conversation, and keeps both where that was asked for.
pub(crate) struct ResponsesFormatter {
    response: ResponseObject,
    parts: Parts,
    sequence_number: u64,
    turns: Vec<Message>,
    kept: Arc<Kept>,
}

impl ResponsesFormatter {
    /// Takes the conversation out of `asked`.
    pub(crate) fn new(model: &str, kept: Arc<Kept>, asked: &mut PreparedResponse) -> Self {
        Self {
            response: begun(model, &asked.request),
            parts: Parts::new(asked.prepared.parser()),
            sequence_number: 0,
            turns: std::mem::take(&mut asked.turns),
            kept,
        }
    }

    /// The response is whole: `usage` is counted, and it is kept.
    fn complete(&mut self, usage: Usage) {
        self.response.usage = Some(counts(usage));
        if !self.response.store {
            return;
        }
        self.turns.push(assistant_turn(self.parts.row()));
        let text = |value: Result<String, _>| value.unwrap_or_default();
        let kept = KeptResponse {
            turns: text(serde_json::to_string(&self.turns)),
            response: text(serde_json::to_string(&self.response)),
        };
        self.kept.keep(self.response.id.clone(), kept);
    }

    fn done(&mut self, reason: Reason) {
        let output = self.parts.row().iter().map(|part| item(part, ended(part), true));
        self.response.output = output.collect();
        self.response.status = match reason {
            Reason::Stop | Reason::StopString(_) => AnswerStatus::Completed,
            Reason::Length => AnswerStatus::Incomplete,
        };
        self.response.incomplete_details =
            (reason == Reason::Length).then_some(IncompleteDetails { reason: "max_output_tokens" });
    }

    fn event(&mut self, r#type: &'static str, fields: EventFields) -> ResponsesEvent {
        let sequence_number = self.sequence_number;
        self.sequence_number += 1;
        ResponsesEvent { r#type, sequence_number, fields }
    }

    fn about_all(&mut self, r#type: &'static str) -> ResponsesEvent {
        let response = Box::new(self.response.clone());
        self.event(r#type, EventFields::Response { response })
    }

    fn step(&mut self, step: Step) -> Vec<ResponsesEvent> {
        let events = match step {
            Step::Begin(index) => begin_events(index, &self.parts.row()[index]),
            Step::More(index, text) => vec![more_event(index, &self.parts.row()[index], text)],
            Step::End(index) => end_events(index, &self.parts.row()[index]),
        };
        events.into_iter().map(|(r#type, fields)| self.event(r#type, fields)).collect()
    }
}

impl EventFormatter for ResponsesFormatter {
    type Chunk = ResponsesEvent;
    type Response = ResponseObject;

    const FRAMING: Framing = Framing::NamedEvents;

    fn begin(&mut self) -> Vec<ResponsesEvent> {
        vec![self.about_all("response.created"), self.about_all("response.in_progress")]
    }

    fn chunks(&mut self, _index: usize, event: Event) -> Vec<ResponsesEvent> {
        let (steps, reason) = match event {
            Event::Piece(piece) => (self.parts.push(&piece.text), None),
            Event::Done(done) => (self.parts.finish(), Some(done.reason)),
            Event::Vector(_) | Event::Failed(_) | Event::Late => (Vec::new(), None),
        };
        if let Some(reason) = reason {
            self.done(reason);
        }
        steps.into_iter().flat_map(|step| self.step(step)).collect()
    }

    fn end(&mut self, usage: Usage) -> Vec<ResponsesEvent> {
        self.complete(usage);
        let is_whole = self.response.status == AnswerStatus::Completed;
        vec![self.about_all(if is_whole { "response.completed" } else { "response.incomplete" })]
    }

    fn name(chunk: &ResponsesEvent) -> Option<&'static str> {
        Some(chunk.r#type)
    }

    fn failure(&mut self, error: &ApiError) -> Frame {
        self.response.status = AnswerStatus::Failed;
        let message = error.message().to_owned();
        self.response.error = Some(ResponseError { code: "server_error", message });
        let failed = self.about_all("response.failed");
        Frame::new(Some(failed.r#type), &failed)
    }

    fn response(mut self, _chunks: Vec<ResponsesEvent>, usage: Usage) -> ResponseObject {
        self.complete(usage);
        self.response
    }
}

/// The response before anything is said.
fn begun(model: &str, request: &ResponsesRequest) -> ResponseObject {
    let plain = || TextFormat { r#type: "text".into(), name: None, schema: None };
    let format = request.text.as_ref().and_then(|text| text.format.clone());
    let text = TextOptions { format: Some(format.unwrap_or_else(plain)) };
    ResponseObject {
        id: random_id("resp_"),
        object: "response",
        created_at: unix_s(),
        status: AnswerStatus::InProgress,
        error: None,
        incomplete_details: None,
        instructions: request.instructions.clone(),
        max_output_tokens: request.max_output_tokens,
        model: model.into(),
        output: Vec::new(),
        parallel_tool_calls: true,
        previous_response_id: request.previous_response_id.clone(),
        reasoning: request.reasoning.clone().unwrap_or(ReasoningOptions { effort: None }),
        store: request.store.unwrap_or(true),
        temperature: request.temperature.unwrap_or(1.0),
        text,
        tool_choice: request.tool_choice.clone().unwrap_or_else(|| "auto".into()),
        tools: request.tools.clone().unwrap_or_default(),
        top_p: request.top_p.unwrap_or(1.0),
        truncation: "disabled",
        usage: None,
        metadata: request.metadata.clone().unwrap_or_default(),
    }
}

type NamedFields = (&'static str, EventFields);

fn begin_events(output_index: usize, part: &Part) -> Vec<NamedFields> {
    let item = item(part, AnswerStatus::InProgress, false);
    let mut events = vec![("response.output_item.added", EventFields::Item { output_index, item })];
    let content = content(part, String::new());
    events.extend(
        content.map(|content| {
            ("response.content_part.added", about_part(output_index, part, content))
        }),
    );
    events
}

fn more_event(output_index: usize, part: &Part, delta: String) -> NamedFields {
    let item_id = item_id(part);
    let said = |item_id, delta, logprobs| EventFields::Delta {
        item_id,
        output_index,
        content_index: 0,
        delta,
        logprobs,
    };
    match part.kind {
        PartKind::Thought => ("response.reasoning_text.delta", said(item_id, delta, None)),
        PartKind::Text => ("response.output_text.delta", said(item_id, delta, Some([]))),
        PartKind::Call(_) => (
            "response.function_call_arguments.delta",
            EventFields::ArgumentsDelta { item_id, output_index, delta },
        ),
    }
}

fn end_events(output_index: usize, part: &Part) -> Vec<NamedFields> {
    let (item_id, text) = (item_id(part), part.text.clone());
    let said = |item_id, text, logprobs| EventFields::Text {
        item_id,
        output_index,
        content_index: 0,
        text,
        logprobs,
    };
    let mut events = vec![match &part.kind {
        PartKind::Thought => ("response.reasoning_text.done", said(item_id, text, None)),
        PartKind::Text => ("response.output_text.done", said(item_id, text, Some([]))),
        PartKind::Call(name) => (
            "response.function_call_arguments.done",
            EventFields::Arguments { item_id, output_index, name: name.clone(), arguments: text },
        ),
    }];
    let content = content(part, part.text.clone());
    events
        .extend(content.map(|content| {
            ("response.content_part.done", about_part(output_index, part, content))
        }));
    let item = item(part, ended(part), true);
    events.push(("response.output_item.done", EventFields::Item { output_index, item }));
    events
}

/// Its status, when nothing more of it comes.
fn ended(part: &Part) -> AnswerStatus {
    if part.is_whole { AnswerStatus::Completed } else { AnswerStatus::Incomplete }
}

fn about_part(output_index: usize, part: &Part, content: AnswerPart) -> EventFields {
    EventFields::Part { item_id: item_id(part), output_index, content_index: 0, part: content }
}

/// The item of a part, with its text where that is known.
fn item(part: &Part, status: AnswerStatus, with_text: bool) -> AnswerItem {
    let text = if with_text { part.text.clone() } else { String::new() };
    let id = item_id(part);
    let content = |text| content(part, text).filter(|_| with_text).into_iter().collect();
    match &part.kind {
        PartKind::Thought => {
            AnswerItem::Reasoning { id, status, summary: Vec::new(), content: content(text) }
        }
        PartKind::Text => {
            AnswerItem::Message { id, status, role: "assistant", content: content(text) }
        }
        PartKind::Call(name) => AnswerItem::FunctionCall {
            id,
            status,
            call_id: call_id(part),
            name: name.clone(),
            arguments: text,
        },
    }
}

/// `text` as the one content of the part's item; calls have none.
fn content(part: &Part, text: String) -> Option<AnswerPart> {
    match part.kind {
        PartKind::Thought => Some(AnswerPart::ReasoningText(AnswerReasoning { text })),
        PartKind::Text => {
            Some(AnswerPart::OutputText(AnswerText { text, annotations: [], logprobs: [] }))
        }
        PartKind::Call(_) => None,
    }
}

fn item_id(part: &Part) -> String {
    let prefix = match part.kind {
        PartKind::Thought => "rs_",
        PartKind::Text => "msg_",
        PartKind::Call(_) => "fc_",
    };
    format!("{prefix}{}", part.id)
}

fn call_id(part: &Part) -> String {
    format!("call_{}", part.id)
}

/// The answer as a turn of the conversation that goes on.
fn assistant_turn(row: &[Part]) -> Message {
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::<Value>::new());
    for part in row.iter().filter(|part| part.is_whole) {
        match &part.kind {
            PartKind::Thought => thoughts.push_str(&part.text),
            PartKind::Text => text.push_str(&part.text),
            PartKind::Call(name) => {
                let function = json!({ "name": name, "arguments": part.text });
                calls
                    .push(json!({ "id": call_id(part), "type": "function", "function": function }));
            }
        }
    }
    Message {
        role: "assistant".into(),
        content: Some(text.into()),
        reasoning_content: (!thoughts.is_empty()).then_some(thoughts),
        tool_calls: (!calls.is_empty()).then_some(calls),
        ..Message::default()
    }
}

fn counts(usage: Usage) -> ResponsesUsage {
    ResponsesUsage {
        input_tokens: usage.prompt_tokens,
        input_tokens_details: InputTokens {
            cached_tokens: usage.prompt_tokens_details.cached_tokens,
        },
        output_tokens: usage.completion_tokens,
        output_tokens_details: OutputTokens { reasoning_tokens: 0 },
        total_tokens: usage.total_tokens,
    }
}
