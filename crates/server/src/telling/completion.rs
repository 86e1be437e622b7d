//! `/v1/completions`: text pieces and log-probabilities.

use super::{Teller, finish_reason, name};
use crate::wire::{CompletionAnswer, CompletionChoice, CompletionLogprobs, Usage};
use motley_engine::batching::{Candidate, Event, SaidToken};

/// Tells the continuations of one request's prompts.
pub(crate) struct CompletionTeller {
    id: String,
    created: u64,
    model: String,
    choices: Vec<Choice>,
}

/// One continuation so far.
struct Choice {
    /// The prompt, to be shown first (`echo`).
    echo: String,
    text_bytes: usize,
}

impl CompletionTeller {
    pub(crate) fn new(model: &str, created: u64, echo: Vec<String>) -> Self {
        let choices = echo.into_iter().map(|echo| Choice { text_bytes: echo.len(), echo });
        Self { id: name("cmpl"), created, model: model.into(), choices: choices.collect() }
    }

    fn chunk(&self, choices: Vec<CompletionChoice>, usage: Option<Usage>) -> CompletionAnswer {
        CompletionAnswer {
            id: self.id.clone(),
            object: "text_completion",
            created: self.created,
            model: self.model.clone(),
            choices,
            usage,
        }
    }
}

impl Teller for CompletionTeller {
    type Chunk = CompletionAnswer;
    type Answer = CompletionAnswer;

    fn tell(&mut self, index: usize, event: Event) -> Vec<CompletionAnswer> {
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
            Event::Failed(_) => return Vec::new(),
        }
        piece.text = text;
        vec![self.chunk(vec![piece], None)]
    }

    fn counts(&self, usage: Usage) -> CompletionAnswer {
        self.chunk(Vec::new(), Some(usage))
    }

    fn whole(self, chunks: Vec<CompletionAnswer>, usage: Usage) -> CompletionAnswer {
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
