//! `/infill`: pieces of text, and counts at the end.

use super::formatter::{EventFormatter, Frame, Framing};
use crate::error::ApiError;
use crate::request::PreparedRequest;
use crate::wire::{InfillResponse, Usage};
use motley_engine::batching::{Event, Reason};
use std::sync::Arc;

/// Formats what belongs into one gap.
pub(crate) struct InfillFormatter {
    model: String,
    stops: Arc<[String]>,
    reason: Option<Reason>,
}

impl InfillFormatter {
    pub(crate) fn new(model: &str, prepared: &PreparedRequest) -> Self {
        let stops = prepared.asks.first().map(|ask| Arc::clone(&ask.stop)).unwrap_or_default();
        Self { model: model.into(), stops, reason: None }
    }

    fn piece(&self, content: String) -> InfillResponse {
        InfillResponse {
            index: 0,
            content,
            stop: false,
            model: self.model.clone(),
            tokens_predicted: 0,
            tokens_evaluated: 0,
            stop_type: None,
            stopping_word: None,
        }
    }

    fn last(&self, content: String, usage: Usage) -> InfillResponse {
        let stopping_word = match self.reason {
            Some(Reason::StopString(index)) => self.stops.get(index).cloned(),
            _ => None,
        };
        InfillResponse {
            stop: true,
            tokens_predicted: usage.completion_tokens,
            tokens_evaluated: usage.prompt_tokens,
            stop_type: self.reason.map(|reason| match reason {
                Reason::Stop => "eos",
                Reason::StopString(_) => "word",
                Reason::Length => "limit",
            }),
            stopping_word,
            ..self.piece(content)
        }
    }
}

impl EventFormatter for InfillFormatter {
    type Chunk = InfillResponse;
    type Response = InfillResponse;

    const FRAMING: Framing = Framing::NamedEvents;

    fn chunks(&mut self, _index: usize, event: Event) -> Vec<InfillResponse> {
        match event {
            Event::Piece(piece) => vec![self.piece(piece.text)],
            Event::Done(done) => {
                self.reason = Some(done.reason);
                Vec::new()
            }
            Event::Vector(_) | Event::Failed(_) | Event::Late => Vec::new(),
        }
    }

    fn end(&mut self, usage: Usage) -> Vec<InfillResponse> {
        vec![self.last(String::new(), usage)]
    }

    fn failure(&mut self, error: &ApiError) -> Frame {
        Frame::new(None, &error.body())
    }

    fn response(self, chunks: Vec<InfillResponse>, usage: Usage) -> InfillResponse {
        let content = chunks.into_iter().map(|chunk| chunk.content).collect();
        self.last(content, usage)
    }
}
