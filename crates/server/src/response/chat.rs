//! `/v1/chat/completions`: deltas, calls, log-probabilities.

use super::formatter::{EventFormatter, Frame, Framing, ResponseHead, finish_reason, random_id};
use crate::error::ApiError;
use crate::request::PreparedRequest;
use crate::wire::{
    ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, ChatResponse, FunctionCall, FunctionDelta,
    LogprobContent, LogprobList, ResponseMessage, ToolCall, ToolCallDelta, TopLogprob, Usage,
};
use motley_engine::batching::{Candidate, Event, Piece, SaidToken};
use motley_engine::text::output::{Parser, Said};

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
    /// Calls that began, and whether one of them is whole.
    calls: usize,
    called: bool,
}

impl Choice {
    fn new(parser: Parser) -> Self {
        Self { parser, begun: false, calls: 0, called: false }
    }
}

impl ChatFormatter {
    pub(crate) fn new(model: &str, prepared: &PreparedRequest) -> Self {
        let choice = |_| Choice::new(prepared.parser());
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
            Event::Piece(piece) => choice.piece(index, piece),
            Event::Done(done) => choice.end(index, finish_reason(done.reason)),
            Event::Vector(_) | Event::Failed(_) | Event::Late => Vec::new(),
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
    fn piece(&mut self, index: usize, piece: Piece) -> Vec<ChatChunkChoice> {
        let said = self.parser.push(&piece.text);
        let logprobs = piece.token.map(|token| LogprobList { content: vec![logprob(token)] });
        let mut deltas = self.deltas(said);
        if deltas.is_empty() && logprobs.is_some() {
            deltas.push(self.delta(ChatDelta::default()));
        }
        let mut chunks: Vec<_> = deltas.into_iter().map(|delta| chunk(index, delta)).collect();
        if let Some(first) = chunks.first_mut() {
            first.logprobs = logprobs;
        }
        chunks
    }

    fn end(&mut self, index: usize, reason: &'static str) -> Vec<ChatChunkChoice> {
        let rest = self.parser.finish();
        let mut deltas = self.deltas(rest);
        if !self.begun {
            deltas.push(self.delta(ChatDelta::default()));
        }
        let mut chunks: Vec<_> = deltas.into_iter().map(|delta| chunk(index, delta)).collect();
        let called = self.called && reason == "stop";
        let finish_reason = Some(if called { "tool_calls" } else { reason });
        chunks.push(ChatChunkChoice { finish_reason, ..chunk(index, ChatDelta::default()) });
        chunks
    }

    fn deltas(&mut self, said: Vec<Said>) -> Vec<ChatDelta> {
        let mut deltas = Vec::new();
        for piece in said {
            let mut delta = ChatDelta::default();
            match piece {
                Said::Text(text) => delta.content = Some(text),
                Said::Thought(thought) => delta.reasoning_content = Some(thought),
                Said::Call(name) => delta.tool_calls.push(self.call_begun(name)),
                Said::Arguments(more) => delta.tool_calls.push(self.call_goes_on(more)),
                Said::CallEnd => {
                    self.called = true;
                    continue;
                }
            }
            deltas.push(self.delta(delta));
        }
        deltas
    }

    /// The first one says who speaks.
    fn delta(&mut self, delta: ChatDelta) -> ChatDelta {
        let first = !std::mem::replace(&mut self.begun, true);
        ChatDelta { role: first.then_some("assistant"), ..delta }
    }

    fn call_begun(&mut self, name: String) -> ToolCallDelta {
        self.calls += 1;
        ToolCallDelta {
            index: self.calls - 1,
            id: Some(random_id("call-")),
            r#type: Some("function"),
            function: FunctionDelta { name: Some(name), arguments: String::new() },
        }
    }

    fn call_goes_on(&self, arguments: String) -> ToolCallDelta {
        let function = FunctionDelta { name: None, arguments };
        ToolCallDelta { index: self.calls.saturating_sub(1), id: None, r#type: None, function }
    }
}

fn chunk(index: usize, delta: ChatDelta) -> ChatChunkChoice {
    ChatChunkChoice { index, delta, logprobs: None, finish_reason: None }
}

fn add(choice: &mut ChatChoice, piece: ChatChunkChoice) {
    let message = &mut choice.message;
    if let Some(text) = piece.delta.content {
        message.content.get_or_insert_default().push_str(&text);
    }
    if let Some(text) = piece.delta.reasoning_content {
        message.reasoning_content.get_or_insert_default().push_str(&text);
    }
    piece.delta.tool_calls.into_iter().for_each(|delta| add_call(&mut message.tool_calls, delta));
    if let Some(logprobs) = piece.logprobs {
        choice.logprobs.get_or_insert_default().content.extend(logprobs.content);
    }
    if let Some(reason) = piece.finish_reason {
        choice.finish_reason = reason;
    }
}

fn add_call(calls: &mut Vec<ToolCall>, delta: ToolCallDelta) {
    let FunctionDelta { name, arguments } = delta.function;
    match (delta.id, name, calls.get_mut(delta.index)) {
        (Some(id), Some(name), _) => {
            let function = FunctionCall { name, arguments };
            calls.push(ToolCall { id, r#type: "function", function });
        }
        (_, _, Some(call)) => call.function.arguments.push_str(&arguments),
        _ => {}
    }
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
    use motley_engine::batching::{AnswerTimes, Done, Reason};
    use motley_engine::text::output::{Calls, Format, OutputFormat};
    use std::sync::Arc;

    fn done(reason: Reason) -> Event {
        Event::Done(Done {
            reason,
            prompt_tokens: 3,
            reused_tokens: 0,
            answer_tokens: 2,
            times: AnswerTimes::default(),
        })
    }

    fn piece(text: &str) -> Event {
        Event::Piece(Piece { text: text.into(), token: None })
    }

    fn whole(calls: Format, events: Vec<Event>) -> ChatChoice {
        let format = OutputFormat { calls, thoughts: None };
        let choices = vec![Choice::new(Parser::new(format))];
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
    fn a_stream_has_a_call_in_pieces() {
        let format = OutputFormat { calls: Format::Hermes, thoughts: None };
        let parser = Parser::with_types(format, Arc::default(), Calls::InPieces);
        let mut choice = Choice::new(parser);
        let mut deltas = Vec::new();
        for text in ["<tool_call>{\"name\": \"f\", \"arguments\": {", "\"a\": ", "1}}</tool_call>"]
        {
            let piece = Piece { text: text.into(), token: None };
            deltas.extend(
                choice.piece(0, piece).into_iter().flat_map(|chunk| chunk.delta.tool_calls),
            );
        }
        let first = deltas.remove(0);
        assert_eq!((first.index, first.r#type), (0, Some("function")));
        assert_eq!(first.function.name.as_deref(), Some("f"));
        assert!(first.id.is_some() && first.function.arguments.is_empty());
        let more: Vec<_> = deltas.iter().map(|delta| delta.function.arguments.as_str()).collect();
        assert_eq!(more, ["{", "\"a\": ", "1}"]);
        assert!(deltas.iter().all(|delta| delta.id.is_none() && delta.function.name.is_none()));
    }

    #[test]
    fn an_empty_answer_is_empty_text() {
        let choice = whole(Format::Plain, vec![done(Reason::Stop)]);
        assert_eq!(choice.message.content.as_deref(), Some(""));
    }
}
