//! `/v1/completions`: text pieces and log-probabilities.

use super::formatter::{EventFormatter, Frame, Framing, ResponseHead, finish_reason};
use crate::error::ApiError;
use crate::request::PreparedRequest;
use crate::wire::{CompletionChoice, CompletionLogprobs, CompletionResponse, Usage};
use motley_engine::batching::{Candidate, Event, SaidToken};

/// Formats the continuations of one request's prompts.
pub(crate) struct CompletionFormatter {
    head: ResponseHead,
    choices: Vec<Choice>,
    include_usage: bool,
}

/// One continuation so far.
struct Choice {
    /// The prompt, to be shown first (`echo`).
    echo: String,
    text_bytes: usize,
}

impl CompletionFormatter {
    /// Takes the texts to begin with out of `prepared`.
    pub(crate) fn new(model: &str, prepared: &mut PreparedRequest) -> Self {
        let echo = std::mem::take(&mut prepared.echo);
        let choices = echo.into_iter().map(|echo| Choice { text_bytes: echo.len(), echo });
        let (head, choices) = (ResponseHead::new("cmpl-", model), choices.collect());
        Self { head, choices, include_usage: prepared.include_usage }
    }

    fn chunk(&self, choices: Vec<CompletionChoice>, usage: Option<Usage>) -> CompletionResponse {
        CompletionResponse {
            id: self.head.id.clone(),
            object: "text_completion",
            created: self.head.created,
            model: self.head.model.clone(),
            choices,
            usage,
        }
    }
}

impl EventFormatter for CompletionFormatter {
    type Chunk = CompletionResponse;
    type Response = CompletionResponse;

    const FRAMING: Framing = Framing::EventsUntilDone;

    fn chunks(&mut self, index: usize, event: Event) -> Vec<CompletionResponse> {
        let Some(choice) = self.choices.get_mut(index) else { return Vec::new() };
        let mut text = std::mem::take(&mut choice.echo);
        let mut piece =
            CompletionChoice { index, text: String::new(), logprobs: None, finish_reason: None };
        match event {
            Event::Piece(said) => {
                piece.logprobs = said.token.map(|token| logprobs(token, choice.text_bytes));
                choice.text_bytes += said.text.len();
                text.push_str(&said.text);
            }
            Event::Done(done) => piece.finish_reason = Some(finish_reason(done.reason)),
            Event::Vector(_) | Event::Failed(_) | Event::Late => return Vec::new(),
        }
        piece.text = text;
        vec![self.chunk(vec![piece], None)]
    }

    fn end(&mut self, usage: Usage) -> Vec<CompletionResponse> {
        let counted = || self.chunk(Vec::new(), Some(usage));
        self.include_usage.then(counted).into_iter().collect()
    }

    fn failure(&mut self, error: &ApiError) -> Frame {
        Frame::new(None, &error.body())
    }

    fn response(self, chunks: Vec<CompletionResponse>, usage: Usage) -> CompletionResponse {
        let empty = |index| CompletionChoice {
            index,
            text: String::new(),
            logprobs: None,
            finish_reason: None,
        };
        let mut choices: Vec<_> = (0..self.choices.len()).map(empty).collect();
        for piece in chunks.into_iter().flat_map(|chunk| chunk.choices) {
            if let Some(choice) = choices.get_mut(piece.index) {
                add(choice, piece);
            }
        }
        self.chunk(choices, Some(usage))
    }
}

fn add(choice: &mut CompletionChoice, piece: CompletionChoice) {
    choice.text.push_str(&piece.text);
    choice.finish_reason = choice.finish_reason.or(piece.finish_reason);
    if let Some(more) = piece.logprobs {
        let logprobs = choice.logprobs.get_or_insert_default();
        logprobs.tokens.extend(more.tokens);
        logprobs.token_logprobs.extend(more.token_logprobs);
        logprobs.top_logprobs.extend(more.top_logprobs);
        logprobs.text_offset.extend(more.text_offset);
    }
}

fn logprobs(token: SaidToken, text_bytes: usize) -> CompletionLogprobs {
    let text = |candidate: &Candidate| String::from_utf8_lossy(&candidate.bytes).into_owned();
    CompletionLogprobs {
        tokens: vec![text(&token.said)],
        token_logprobs: vec![token.said.logprob],
        top_logprobs: vec![token.top.iter().map(|top| (text(top), top.logprob)).collect()],
        text_offset: vec![text_bytes],
    }
}
