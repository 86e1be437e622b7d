//! `/api/chat` and `/api/generate`: a line of JSON for each piece, counts with the last.

use super::formatter::{EventFormatter, Frame, Framing, finish_reason};
use super::parts::arguments_object;
use crate::clock::rfc3339_now;
use crate::dialect::ollama;
use crate::error::ApiError;
use crate::request::PreparedRequest;
use crate::wire::{OllamaAnswer, OllamaCall, OllamaCounts, OllamaFunction, OllamaSaid, Usage};
use motley_engine::batching::{AnswerTimes, Event};
use motley_engine::text::output::{Call, Calls, Parsed, Parser};
use std::time::{Duration, Instant};

/// In which field the text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OllamaShape {
    /// `message`.
    Chat,
    /// `response`.
    Generate,
}

/// Formats one answer.
pub(crate) struct OllamaFormatter {
    shape: OllamaShape,
    model: String,
    parser: Parser,
    started: Instant,
    times: AnswerTimes,
    done_reason: &'static str,
}

impl OllamaFormatter {
    pub(crate) fn new(shape: OllamaShape, model: &str, prepared: &PreparedRequest) -> Self {
        Self {
            shape,
            model: model.into(),
            parser: prepared.parser_of(Calls::Whole),
            started: Instant::now(),
            times: AnswerTimes::default(),
            done_reason: "stop",
        }
    }

    fn last(&self, said: Parsed, usage: Usage) -> OllamaAnswer {
        OllamaAnswer {
            done: true,
            done_reason: Some(self.done_reason),
            counts: OllamaCounts {
                total_duration: Some(nanoseconds(self.started.elapsed())),
                load_duration: Some(0),
                prompt_eval_count: Some(usage.prompt_tokens),
                prompt_eval_duration: Some(nanoseconds(self.times.prompt)),
                eval_count: Some(usage.completion_tokens),
                eval_duration: Some(nanoseconds(self.times.answer)),
            },
            ..answer(self.shape, &self.model, said)
        }
    }
}

impl EventFormatter for OllamaFormatter {
    type Chunk = OllamaAnswer;
    type Response = OllamaAnswer;

    const FRAMING: Framing = Framing::Lines;

    fn chunks(&mut self, _index: usize, event: Event) -> Vec<OllamaAnswer> {
        let said = match event {
            Event::Piece(piece) => self.parser.push(&piece.text).into_iter().collect(),
            Event::Done(done) => {
                self.done_reason = finish_reason(done.reason);
                self.times = done.times;
                self.parser.finish().into_iter().collect()
            }
            Event::Vector(_) | Event::Failed(_) | Event::Late => Parsed::default(),
        };
        if said == Parsed::default() {
            return Vec::new();
        }
        vec![answer(self.shape, &self.model, said)]
    }

    fn end(&mut self, usage: Usage) -> Vec<OllamaAnswer> {
        vec![self.last(Parsed::default(), usage)]
    }

    fn failure(&mut self, error: &ApiError) -> Frame {
        Frame::new(None, &ollama(error))
    }

    fn response(self, chunks: Vec<OllamaAnswer>, usage: Usage) -> OllamaAnswer {
        let mut whole = self.last(Parsed::default(), usage);
        for chunk in chunks {
            add(&mut whole, chunk);
        }
        whole
    }
}

/// The answer to a request that says nothing: the model is there.
pub(crate) fn loaded(shape: OllamaShape, model: &str) -> OllamaAnswer {
    let done_reason = Some("load");
    OllamaAnswer { done: true, done_reason, ..answer(shape, model, Parsed::default()) }
}

fn answer(shape: OllamaShape, model: &str, said: Parsed) -> OllamaAnswer {
    let thinking = Some(said.thought).filter(|thoughts| !thoughts.is_empty());
    let calls = said.calls.into_iter().map(call).collect();
    let (message, response, thinking) = match shape {
        OllamaShape::Chat => {
            let role = "assistant";
            let said = OllamaSaid { role, content: said.text, thinking, tool_calls: calls };
            (Some(said), None, None)
        }
        OllamaShape::Generate => (None, Some(said.text), thinking),
    };
    OllamaAnswer {
        model: model.into(),
        created_at: rfc3339_now(),
        message,
        response,
        thinking,
        done: false,
        done_reason: None,
        counts: OllamaCounts::default(),
    }
}

fn add(whole: &mut OllamaAnswer, piece: OllamaAnswer) {
    let join = |whole: &mut Option<String>, more: Option<String>| {
        if let Some(more) = more {
            whole.get_or_insert_default().push_str(&more);
        }
    };
    join(&mut whole.response, piece.response);
    join(&mut whole.thinking, piece.thinking);
    if let (Some(said), Some(more)) = (&mut whole.message, piece.message) {
        said.content.push_str(&more.content);
        join(&mut said.thinking, more.thinking);
        said.tool_calls.extend(more.tool_calls);
    }
}

fn call(call: Call) -> OllamaCall {
    let arguments = arguments_object(&call.arguments);
    OllamaCall { function: OllamaFunction { name: call.name, arguments } }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
