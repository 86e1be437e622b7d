//! `/v1/messages`: blocks that begin, grow and end.

use super::formatter::{EventFormatter, Frame, Framing, random_id};
use super::parts::{Part, PartKind, Parts, Step, arguments_object};
use crate::dialect::anthropic;
use crate::error::ApiError;
use crate::request::PreparedRequest;
use crate::wire::{
    AnthropicUsage, BlockDelta, MessageEnd, MessagesEvent, MessagesResponse, OutputBlock, Usage,
};
use motley_engine::batching::{Event, Reason};
use serde_json::Map;
use std::sync::Arc;

/// Formats the answer to one conversation.
pub(crate) struct MessagesFormatter {
    id: String,
    model: String,
    parts: Parts,
    prompt_tokens: usize,
    stops: Arc<[String]>,
    reason: Option<Reason>,
}

impl MessagesFormatter {
    pub(crate) fn new(model: &str, prepared: &PreparedRequest) -> Self {
        let first = prepared.asks.first();
        Self {
            id: random_id("msg_"),
            model: model.into(),
            parts: Parts::new(prepared.parser()),
            prompt_tokens: first.map_or(0, |ask| ask.prompt.len()),
            stops: first.map(|ask| Arc::clone(&ask.stop)).unwrap_or_default(),
            reason: None,
        }
    }

    fn message(&self, content: Vec<OutputBlock>, usage: AnthropicUsage) -> MessagesResponse {
        let MessageEnd { stop_reason, stop_sequence } = self.message_end();
        MessagesResponse {
            id: self.id.clone(),
            r#type: "message",
            role: "assistant",
            model: self.model.clone(),
            content,
            stop_reason,
            stop_sequence,
            usage,
        }
    }

    fn message_end(&self) -> MessageEnd {
        let stop_reason = self.reason.map(|reason| match reason {
            Reason::Length => "max_tokens",
            _ if self.parts.calls() => "tool_use",
            Reason::StopString(_) => "stop_sequence",
            Reason::Stop => "end_turn",
        });
        let stop_sequence = match self.reason {
            Some(Reason::StopString(index)) => self.stops.get(index).cloned(),
            _ => None,
        };
        MessageEnd { stop_reason, stop_sequence }
    }

    fn event(&self, step: Step) -> MessagesEvent {
        let row = self.parts.row();
        match step {
            Step::Begin(index) => {
                MessagesEvent::ContentBlockStart { index, content_block: empty(&row[index]) }
            }
            Step::More(index, text) => {
                let delta = match row[index].kind {
                    PartKind::Thought => BlockDelta::ThinkingDelta { thinking: text },
                    PartKind::Text => BlockDelta::TextDelta { text },
                    PartKind::Call(_) => BlockDelta::InputJsonDelta { partial_json: text },
                };
                MessagesEvent::ContentBlockDelta { index, delta }
            }
            Step::End(index) => MessagesEvent::ContentBlockStop { index },
        }
    }
}

impl EventFormatter for MessagesFormatter {
    type Chunk = MessagesEvent;
    type Response = MessagesResponse;

    const FRAMING: Framing = Framing::NamedEvents;

    fn begin(&mut self) -> Vec<MessagesEvent> {
        // What an earlier request has computed of it is known at the end.
        let usage =
            AnthropicUsage { input_tokens: self.prompt_tokens, ..AnthropicUsage::default() };
        vec![MessagesEvent::MessageStart { message: self.message(Vec::new(), usage) }]
    }

    fn chunks(&mut self, _index: usize, event: Event) -> Vec<MessagesEvent> {
        let steps = match event {
            Event::Piece(piece) => self.parts.push(&piece.text),
            Event::Done(done) => {
                self.reason = Some(done.reason);
                self.parts.finish()
            }
            Event::Vector(_) | Event::Failed(_) | Event::Late => Vec::new(),
        };
        steps.into_iter().map(|step| self.event(step)).collect()
    }

    fn end(&mut self, usage: Usage) -> Vec<MessagesEvent> {
        let delta = self.message_end();
        vec![
            MessagesEvent::MessageDelta { delta, usage: counts(usage) },
            MessagesEvent::MessageStop,
        ]
    }

    fn name(chunk: &MessagesEvent) -> Option<&'static str> {
        Some(match chunk {
            MessagesEvent::MessageStart { .. } => "message_start",
            MessagesEvent::ContentBlockStart { .. } => "content_block_start",
            MessagesEvent::ContentBlockDelta { .. } => "content_block_delta",
            MessagesEvent::ContentBlockStop { .. } => "content_block_stop",
            MessagesEvent::MessageDelta { .. } => "message_delta",
            MessagesEvent::MessageStop => "message_stop",
        })
    }

    fn failure(&mut self, error: &ApiError) -> Frame {
        Frame::new(Some("error"), &anthropic(error))
    }

    fn response(self, _chunks: Vec<MessagesEvent>, usage: Usage) -> MessagesResponse {
        self.message(self.parts.row().iter().map(whole).collect(), counts(usage))
    }
}

/// A block that is to grow.
fn empty(part: &Part) -> OutputBlock {
    match &part.kind {
        PartKind::Thought => OutputBlock::Thinking { thinking: String::new(), signature: "" },
        PartKind::Text => OutputBlock::Text { text: String::new() },
        PartKind::Call(name) => tool_use(part, name, Map::new()),
    }
}

fn whole(part: &Part) -> OutputBlock {
    let text = part.text.clone();
    match &part.kind {
        PartKind::Thought => OutputBlock::Thinking { thinking: text, signature: "" },
        PartKind::Text => OutputBlock::Text { text },
        PartKind::Call(name) => tool_use(part, name, arguments_object(&text)),
    }
}

fn tool_use(part: &Part, name: &str, input: Map<String, serde_json::Value>) -> OutputBlock {
    OutputBlock::ToolUse { id: format!("toolu_{}", part.id), name: name.into(), input }
}

fn counts(usage: Usage) -> AnthropicUsage {
    let cached = usage.prompt_tokens_details.cached_tokens;
    AnthropicUsage {
        input_tokens: usage.prompt_tokens.saturating_sub(cached),
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: 0,
        output_tokens: usage.completion_tokens,
    }
}
