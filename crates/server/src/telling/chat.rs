//! `/v1/chat/completions`: deltas, calls, log-probabilities.

use super::{Teller, finish_reason, name};
use crate::tools::{Call, Format, Parser, Said};
use crate::wire::{
    AnswerMessage, ChatAnswer, ChatChoice, ChatChunk, ChatChunkChoice, ChatDelta, FunctionCall,
    LogprobContent, LogprobList, ToolCall, ToolCallDelta, TopLogprob, Usage,
};
use motley_engine::batching::{Candidate, Event, Piece, SaidToken};

/// Tells the answers to one conversation.
pub(crate) struct ChatTeller {
    id: String,
    created: u64,
    model: String,
    choices: Vec<Choice>,
}

/// One answer so far.
struct Choice {
    parser: Parser,
    begun: bool,
    calls: usize,
}

impl ChatTeller {
    pub(crate) fn new(model: &str, created: u64, format: Format, choices: usize) -> Self {
        let choice = || Choice { parser: Parser::new(format), begun: false, calls: 0 };
        Self {
            id: name("chatcmpl"),
            created,
            model: model.into(),
            choices: (0..choices).map(|_| choice()).collect(),
        }
    }

    fn chunk(&self, choices: Vec<ChatChunkChoice>) -> ChatChunk {
        ChatChunk {
            id: self.id.clone(),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.clone(),
            choices,
            usage: None,
        }
    }
}

impl Teller for ChatTeller {
    type Chunk = ChatChunk;
    type Answer = ChatAnswer;

    fn tell(&mut self, index: usize, event: Event) -> Vec<ChatChunk> {
        let Some(choice) = self.choices.get_mut(index) else { return Vec::new() };
        let pieces = match event {
            Event::Piece(piece) => choice.piece(index, piece).into_iter().collect(),
            Event::Done(done) => choice.end(index, finish_reason(done.reason)),
            Event::Failed(_) => Vec::new(),
        };
        pieces.into_iter().map(|piece| self.chunk(vec![piece])).collect()
    }

    fn counts(&self, usage: Usage) -> ChatChunk {
        ChatChunk { usage: Some(usage), ..self.chunk(Vec::new()) }
    }

    fn whole(self, chunks: Vec<ChatChunk>, usage: Usage) -> ChatAnswer {
        let empty = |index| ChatChoice {
            index,
            message: AnswerMessage { role: "assistant", ..AnswerMessage::default() },
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
        let (id, created, model) = (self.id, self.created, self.model);
        ChatAnswer { id, object: "chat.completion", created, model, choices, usage }
    }
}

impl Choice {
    fn piece(&mut self, index: usize, piece: Piece) -> Option<ChatChunkChoice> {
        let said = self.parser.push(&piece.text);
        let logprobs = piece.token.map(|token| LogprobList { content: vec![logprob(token)] });
        if said == Said::default() && logprobs.is_none() {
            return None;
        }
        let delta = self.delta(said);
        Some(ChatChunkChoice { index, delta, logprobs, finish_reason: None })
    }

    fn end(&mut self, index: usize, reason: &'static str) -> Vec<ChatChunkChoice> {
        let rest = self.parser.finish();
        let mut pieces = Vec::new();
        if rest != Said::default() || !self.begun {
            let delta = self.delta(rest);
            pieces.push(ChatChunkChoice { index, delta, logprobs: None, finish_reason: None });
        }
        let called = self.calls > 0 && reason == "stop";
        let finish_reason = Some(if called { "tool_calls" } else { reason });
        let delta = ChatDelta::default();
        pieces.push(ChatChunkChoice { index, delta, logprobs: None, finish_reason });
        pieces
    }

    fn delta(&mut self, said: Said) -> ChatDelta {
        let first = !std::mem::replace(&mut self.begun, true);
        let some = |text: String| (!text.is_empty()).then_some(text);
        let calls = said.calls.into_iter().map(|call| {
            let index = self.calls;
            self.calls += 1;
            ToolCallDelta { index, call: tool_call(call) }
        });
        ChatDelta {
            tool_calls: calls.collect(),
            role: first.then_some("assistant"),
            content: some(said.text),
            reasoning_content: some(said.thought),
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
    ToolCall { id: name("call"), r#type: "function", function }
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

    fn done(reason: Reason) -> Event {
        Event::Done(Done { reason, prompt_tokens: 3, reused_tokens: 0, answer_tokens: 2 })
    }

    fn piece(text: &str) -> Event {
        Event::Piece(Piece { text: text.into(), token: None })
    }

    fn whole(format: Format, events: Vec<Event>) -> ChatChoice {
        let mut teller = ChatTeller::new("m", 0, format, 1);
        let chunks = events.into_iter().flat_map(|event| teller.tell(0, event)).collect();
        teller.whole(chunks, Usage::default()).choices.remove(0)
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
