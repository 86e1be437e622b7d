//! `/v1/chat/completions`: deltas, calls, log-probabilities.

use super::formatter::{EventFormatter, Frame, Framing, ResponseHead, finish_reason, random_id};
use crate::error::ApiError;
use crate::request::PreparedRequest;
use crate::wire::{
    ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, ChatResponse, FunctionCall, LogprobContent,
    LogprobList, ResponseMessage, ToolCall, ToolCallDelta, TopLogprob, Usage,
};
use motley_engine::batching::{Candidate, Event, Piece, SaidToken};
use motley_engine::text::output::{Call, Parsed, Parser};

/// Formats the choices of one conversation.
pub(crate) struct ChatFormatter {
    head: ResponseHead,
    choices: Vec<Choice>,
    include_usage: bool,
}

/// One choice so far.
struct Choice {
    parser: Parser,
    begun: bool,
    calls: usize,
}

impl ChatFormatter {
    pub(crate) fn new(model: &str, prepared: &PreparedRequest) -> Self {
        let choice = |_| Choice { parser: prepared.parser(), begun: false, calls: 0 };
        let choices = prepared.asks.iter().map(choice).collect();
        let head = ResponseHead::new("chatcmpl-", model);
        Self { head, choices, include_usage: prepared.include_usage }
    }

    fn chunk(&self, choices: Vec<ChatChunkChoice>) -> ChatChunk {
        ChatChunk {
            id: self.head.id.clone(),
            object: "chat.completion.chunk",
            created: self.head.created,
            model: self.head.model.clone(),
            choices,
            usage: None,
        }
    }
}

impl EventFormatter for ChatFormatter {
    type Chunk = ChatChunk;
    type Response = ChatResponse;

    const FRAMING: Framing = Framing::EventsUntilDone;

    fn chunks(&mut self, index: usize, event: Event) -> Vec<ChatChunk> {
        let Some(choice) = self.choices.get_mut(index) else { return Vec::new() };
        let pieces = match event {
            Event::Piece(piece) => choice.piece(index, piece).into_iter().collect(),
            Event::Done(done) => choice.end(index, finish_reason(done.reason)),
            Event::Failed(_) => Vec::new(),
        };
        pieces.into_iter().map(|piece| self.chunk(vec![piece])).collect()
    }

    fn end(&mut self, usage: Usage) -> Vec<ChatChunk> {
        let counted = || ChatChunk { usage: Some(usage), ..self.chunk(Vec::new()) };
        self.include_usage.then(counted).into_iter().collect()
    }

    fn failure(&mut self, error: &ApiError) -> Frame {
        Frame::new(None, &error.body())
    }

    fn response(self, chunks: Vec<ChatChunk>, usage: Usage) -> ChatResponse {
        let empty = |index| ChatChoice {
            index,
            message: ResponseMessage { role: "assistant", ..ResponseMessage::default() },
            logprobs: None,
            finish_reason: "stop",
        };
        let mut choices: Vec<ChatChoice> = (0..self.choices.len()).map(empty).collect();
        for piece in chunks.into_iter().flat_map(|chunk| chunk.choices) {
            if let Some(choice) = choices.get_mut(piece.index) {
                add(choice, piece);
            }
        }
        for choice in &mut choices {
            if choice.message.tool_calls.is_empty() {
                choice.message.content.get_or_insert_default();
            }
        }
        let ResponseHead { id, created, model } = self.head;
        ChatResponse { id, object: "chat.completion", created, model, choices, usage }
    }
}

impl Choice {
    fn piece(&mut self, index: usize, piece: Piece) -> Option<ChatChunkChoice> {
        let parsed = self.parser.push(&piece.text);
        let logprobs = piece.token.map(|token| LogprobList { content: vec![logprob(token)] });
        if parsed == Parsed::default() && logprobs.is_none() {
            return None;
        }
        let delta = self.delta(parsed);
        Some(ChatChunkChoice { index, delta, logprobs, finish_reason: None })
    }

    fn end(&mut self, index: usize, reason: &'static str) -> Vec<ChatChunkChoice> {
        let rest = self.parser.finish();
        let mut pieces = Vec::new();
        if rest != Parsed::default() || !self.begun {
            let delta = self.delta(rest);
            pieces.push(ChatChunkChoice { index, delta, logprobs: None, finish_reason: None });
        }
        let called = self.calls > 0 && reason == "stop";
        let finish_reason = Some(if called { "tool_calls" } else { reason });
        let delta = ChatDelta::default();
        pieces.push(ChatChunkChoice { index, delta, logprobs: None, finish_reason });
        pieces
    }

    fn delta(&mut self, parsed: Parsed) -> ChatDelta {
        let first = !std::mem::replace(&mut self.begun, true);
        let some = |text: String| (!text.is_empty()).then_some(text);
        let calls = parsed.calls.into_iter().map(|call| {
            let index = self.calls;
            self.calls += 1;
            ToolCallDelta { index, call: tool_call(call) }
        });
        ChatDelta {
            tool_calls: calls.collect(),
            role: first.then_some("assistant"),
            content: some(parsed.text),
            reasoning_content: some(parsed.thought),
        }
    }
}

fn add(choice: &mut ChatChoice, piece: ChatChunkChoice) {
    let message = &mut choice.message;
    if let Some(text) = piece.delta.content {
        message.content.get_or_insert_default().push_str(&text);
    }
    if let Some(text) = piece.delta.reasoning_content {
        message.reasoning_content.get_or_insert_default().push_str(&text);
    }
    message.tool_calls.extend(piece.delta.tool_calls.into_iter().map(|delta| delta.call));
    if let Some(logprobs) = piece.logprobs {
        choice.logprobs.get_or_insert_default().content.extend(logprobs.content);
    }
    if let Some(reason) = piece.finish_reason {
        choice.finish_reason = reason;
    }
}

fn tool_call(call: Call) -> ToolCall {
    let function = FunctionCall { name: call.name, arguments: call.arguments };
    ToolCall { id: random_id("call-"), r#type: "function", function }
}

fn logprob(token: SaidToken) -> LogprobContent {
    let top = |candidate: Candidate| TopLogprob {
        token: String::from_utf8_lossy(&candidate.bytes).into_owned(),
        logprob: candidate.logprob,
        bytes: candidate.bytes,
    };
    LogprobContent {
        token: String::from_utf8_lossy(&token.said.bytes).into_owned(),
        logprob: token.said.logprob,
        bytes: token.said.bytes,
        top_logprobs: token.top.into_iter().map(top).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_engine::batching::{Done, Reason};
    use motley_engine::text::output::{Format, OutputFormat};

    fn done(reason: Reason) -> Event {
        Event::Done(Done { reason, prompt_tokens: 3, reused_tokens: 0, answer_tokens: 2 })
    }

    fn piece(text: &str) -> Event {
        Event::Piece(Piece { text: text.into(), token: None })
    }

    fn whole(calls: Format, events: Vec<Event>) -> ChatChoice {
        let format = OutputFormat { calls, thoughts: None };
        let choices = vec![Choice { parser: Parser::new(format), begun: false, calls: 0 }];
        let head = ResponseHead::new("chatcmpl-", "m");
        let mut formatter = ChatFormatter { head, choices, include_usage: false };
        let chunks = events.into_iter().flat_map(|event| formatter.chunks(0, event)).collect();
        formatter.response(chunks, Usage::default()).choices.remove(0)
    }

    #[test]
    fn text_is_put_together() {
        let choice = whole(Format::Plain, vec![piece("a"), piece("b"), done(Reason::Length)]);
        assert_eq!(choice.message.content.as_deref(), Some("ab"));
        assert_eq!(choice.finish_reason, "length");
    }

    #[test]
    fn calls_change_the_reason_and_leave_no_text() {
        let call = r#"<tool_call>{"name":"f","arguments":{}}</tool_call>"#;
        let choice = whole(Format::Hermes, vec![piece(call), done(Reason::Stop)]);
        assert_eq!(choice.message.content, None);
        assert_eq!(choice.message.tool_calls[0].function.name, "f");
        assert_eq!(choice.finish_reason, "tool_calls");
    }

    #[test]
    fn an_empty_answer_is_empty_text() {
        let choice = whole(Format::Plain, vec![done(Reason::Stop)]);
        assert_eq!(choice.message.content.as_deref(), Some(""));
    }
}
