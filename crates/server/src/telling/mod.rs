//! From the engine's events to what a client reads: one JSON answer, or a stream of
//! server-sent events. A [`Teller`] knows one route's shapes; this file knows the order
//! of things. Dropping the response drops the receivers, and with them the work.

mod chat;
mod completion;

pub(crate) use chat::ChatTeller;
pub(crate) use completion::CompletionTeller;

use crate::app::App;
use crate::asking::Prepared;
use crate::error::ApiError;
use crate::wire::Usage;
use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, BoxStream, StreamExt};
use motley_engine::batching::{Done, Event, Reason};
use serde::Serialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

/// Turns events of a request's answers into one route's shapes.
pub(crate) trait Teller: Send + 'static {
    /// A piece of the answers.
    type Chunk: Serialize + Send;
    /// All of them.
    type Answer: Serialize;

    /// What `event` adds to the answer at `index`.
    fn tell(&mut self, index: usize, event: Event) -> Vec<Self::Chunk>;
    /// The chunk with the token counts.
    fn counts(&self, usage: Usage) -> Self::Chunk;
    /// The pieces put together.
    fn whole(self, chunks: Vec<Self::Chunk>, usage: Usage) -> Self::Answer;
}

/// Submits what was prepared and answers as asked.
pub(crate) async fn answer<T: Teller>(
    app: Arc<App>,
    prepared: Prepared,
    teller: T,
    started: Instant,
) -> Result<Response, ApiError> {
    let Prepared { stream: streams, include_usage, choices, .. } = prepared;
    let events = submit(&app, prepared)?;
    let telling = Telling { app, events, choices, usage: Usage::default(), started, begun: false };
    if !streams {
        return telling.collect(teller).await;
    }
    let state = Streaming { telling, teller, include_usage, ready: VecDeque::new(), over: false };
    let events = stream::unfold(state, |mut state| async move {
        let event = state.next().await?;
        Some((Ok::<_, Infallible>(event), state))
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    // Proxies that collect answers before passing them on would defeat the stream.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

type Events = BoxStream<'static, (usize, Event)>;

fn submit(app: &App, prepared: Prepared) -> Result<Events, ApiError> {
    let mut answers = Vec::new();
    for (index, ask) in prepared.asks.into_iter().enumerate() {
        let receiver = ReceiverStream::new(app.batching.submit(ask)?);
        // Seen only when the engine's thread is gone: what comes after the end is not read.
        let lost = stream::iter([Event::Failed("the engine has stopped".into())]);
        answers.push(receiver.chain(lost).map(move |event| (index, event)).boxed());
    }
    Ok(stream::select_all(answers.into_iter().map(until_end)).boxed())
}

/// The events of one answer up to and with its end.
fn until_end(events: Events) -> Events {
    let ended = |event: &Event| matches!(event, Event::Done(_) | Event::Failed(_));
    let until = events.scan(false, move |over, (index, event)| {
        let go_on = !*over;
        *over |= ended(&event);
        std::future::ready(go_on.then_some((index, event)))
    });
    until.boxed()
}

/// A request being answered.
struct Telling {
    app: Arc<App>,
    events: Events,
    /// Answers to each prompt.
    choices: usize,
    usage: Usage,
    started: Instant,
    begun: bool,
}

impl Telling {
    /// The next event; `None` when all answers are whole.
    async fn next(&mut self) -> Option<Result<(usize, Event), ApiError>> {
        let Some((index, event)) = self.events.next().await else {
            self.app.metrics.whole_answer(self.started.elapsed());
            return None;
        };
        if !std::mem::replace(&mut self.begun, true) {
            self.app.metrics.first_token(self.started.elapsed());
        }
        match &event {
            Event::Done(done) => {
                let first = index.is_multiple_of(self.choices.max(1));
                count(&mut self.usage, first, done);
            }
            Event::Failed(reason) => {
                // Reasons name files of this machine: they are for its log.
                tracing::error!(target: "motley", reason, "a request failed");
                let message = "the engine could not compute this; the server's log says why";
                return Some(Err(ApiError::server(message)));
            }
            Event::Piece(piece) => {
                if self.app.options.log_text {
                    tracing::info!(target: "motley", answer = index, text = piece.text);
                }
            }
        }
        Some(Ok((index, event)))
    }

    async fn collect<T: Teller>(mut self, mut teller: T) -> Result<Response, ApiError> {
        let mut chunks = Vec::new();
        while let Some(event) = self.next().await {
            let (index, event) = event?;
            chunks.extend(teller.tell(index, event));
        }
        Ok(Json(teller.whole(chunks, self.usage)).into_response())
    }
}

/// A stream being written.
struct Streaming<T> {
    telling: Telling,
    teller: T,
    include_usage: bool,
    ready: VecDeque<String>,
    over: bool,
}

impl<T: Teller> Streaming<T> {
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(data) = self.ready.pop_front() {
                return Some(SseEvent::default().data(data));
            }
            if self.over {
                return None;
            }
            match self.telling.next().await {
                Some(Ok((index, event))) => {
                    let chunks = self.teller.tell(index, event);
                    self.ready.extend(chunks.iter().map(json));
                }
                Some(Err(error)) => {
                    self.ready.push_back(json(&error.body()));
                    self.over = true;
                }
                None => {
                    if self.include_usage {
                        self.ready.push_back(json(&self.teller.counts(self.telling.usage)));
                    }
                    self.ready.push_back("[DONE]".into());
                    self.over = true;
                }
            }
        }
    }
}

/// Answers to one prompt share it: it counts with the first of them.
fn count(usage: &mut Usage, first: bool, done: &Done) {
    if first {
        usage.prompt_tokens += done.prompt_tokens;
        usage.prompt_tokens_details.cached_tokens += done.reused_tokens;
    }
    usage.completion_tokens += done.answer_tokens;
    usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
}

/// `stop` or `length`.
fn finish_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop => "stop",
        Reason::Length => "length",
    }
}

/// `chatcmpl-` and the like, with a number nobody else has by chance.
pub(crate) fn name(prefix: &str) -> String {
    format!("{prefix}-{:016x}{:08x}", fastrand::u64(..), fastrand::u32(..))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_counts_once_and_every_answer() {
        let mut usage = Usage::default();
        let done = |prompt_tokens| Done {
            reason: Reason::Stop,
            prompt_tokens,
            reused_tokens: 2,
            answer_tokens: 5,
        };
        // Two prompts with two answers each, in the order they end.
        for (first, prompt_tokens) in [(false, 7), (true, 3), (true, 7), (false, 3)] {
            count(&mut usage, first, &done(prompt_tokens));
        }
        assert_eq!(
            (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens),
            (10, 20, 30)
        );
        assert_eq!(usage.prompt_tokens_details.cached_tokens, 4);
    }
}
