//! Submits a request and sends what comes back, whole or as a stream. The shapes are the
//! formatter's. Dropping the response drops the receivers, and with them the work.

use super::formatter::{EventFormatter, Frame, Framing};
use crate::app::App;
use crate::error::ApiError;
use crate::keys::AskedBy;
use crate::models::InUse;
use crate::request::PreparedRequest;
use crate::telemetry::RequestSpan;
use crate::wire::Usage;
use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use motley_engine::batching::{Ask, Done, Event};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

/// A request in the engine's queue.
pub(crate) struct Submitted {
    events: Events,
    choices: usize,
    streams: bool,
    span: RequestSpan,
}

/// Hands a prepared request to the engine.
pub(crate) fn submit(
    app: &App,
    asker: AskedBy,
    prepared: PreparedRequest,
    span: RequestSpan,
) -> Result<Submitted, ApiError> {
    span.submit();
    let PreparedRequest { stream: streams, choices, .. } = prepared;
    let mut answers = Vec::new();
    for (index, ask) in prepared.asks.into_iter().enumerate() {
        let AskedBy { client, deadline } = asker;
        let ask = Ask { client, deadline, ..ask };
        let receiver = ReceiverStream::new(app.batching.submit(ask)?);
        // Seen only when the engine's thread is gone: what comes after the end is not read.
        let lost = stream::iter([Event::Failed("the engine has stopped".into())]);
        answers.push(receiver.chain(lost).map(move |event| (index, event)).boxed());
    }
    let events = stream::select_all(answers.into_iter().map(until_end)).boxed();
    Ok(Submitted { events, choices, streams, span })
}

/// Sends the response of a submitted request, as a stream where that was requested.
pub(crate) async fn respond<F: EventFormatter>(
    app: InUse,
    submitted: Submitted,
    mut formatter: F,
    started: Instant,
) -> Result<Response, ApiError> {
    let Submitted { events, choices, streams, span } = submitted;
    let usage = Usage::default();
    let active = ActiveRequest { app, events, choices, usage, started, begun: false, span };
    if !streams {
        return active.collect(formatter).await;
    }
    let ready = frames::<F>(&formatter.begin());
    let state = ResponseStream { active, formatter, ready, over: false };
    let frames = stream::unfold(state, |mut state| async move {
        let frame = state.next().await?;
        Some((frame, state))
    });
    let mut response = match F::FRAMING {
        Framing::EventsUntilDone | Framing::NamedEvents => events_of(frames),
        Framing::Lines => lines_of(frames),
    };
    // Proxies that collect answers before passing them on would defeat the stream.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn events_of(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    let event = |frame: Frame| {
        let event = SseEvent::default();
        let event = match frame.name {
            Some(name) => event.event(name),
            None => event,
        };
        Ok::<_, Infallible>(event.data(frame.data))
    };
    Sse::new(frames.map(event)).keep_alive(KeepAlive::default()).into_response()
}

fn lines_of(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    let lines = frames.map(|frame| Ok::<_, Infallible>(frame.data + "\n"));
    let lines_type = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (lines_type, Body::from_stream(lines)).into_response()
}

/// Chunks written out, under their names.
fn frames<F: EventFormatter>(chunks: &[F::Chunk]) -> VecDeque<Frame> {
    chunks.iter().map(|chunk| Frame::new(F::name(chunk), chunk)).collect()
}

type Events = BoxStream<'static, (usize, Event)>;

/// The events of one choice up to and including its end.
fn until_end(events: Events) -> Events {
    let ended = |event: &Event| matches!(event, Event::Done(_) | Event::Failed(_) | Event::Late);
    let until = events.scan(false, move |over, (index, event)| {
        let go_on = !*over;
        *over |= ended(&event);
        std::future::ready(go_on.then_some((index, event)))
    });
    until.boxed()
}

/// A request being answered.
struct ActiveRequest {
    /// Stays while it is answered.
    app: InUse,
    events: Events,
    choices: usize,
    usage: Usage,
    started: Instant,
    begun: bool,
    span: RequestSpan,
}

impl ActiveRequest {
    /// The next event; `None` when all choices are complete.
    async fn next(&mut self) -> Option<Result<(usize, Event), ApiError>> {
        let Some((index, event)) = self.events.next().await else {
            self.app.metrics.whole_answer(self.started.elapsed());
            self.span.answered(&self.usage);
            return None;
        };
        if !std::mem::replace(&mut self.begun, true) {
            self.app.metrics.first_token(self.started.elapsed());
        }
        match &event {
            Event::Done(done) => {
                let first = index.is_multiple_of(self.choices.max(1));
                count(&mut self.usage, first, done);
                self.span.choice_done(index, done);
            }
            Event::Failed(reason) => return Some(Err(self.failed(self.app.failed(reason)))),
            Event::Late => return Some(Err(self.failed(ApiError::late()))),
            // Of texts, which do not come this way.
            Event::Vector(_) => {}
            Event::Piece(piece) => {
                if self.app.options.log_text {
                    tracing::info!(target: crate::LOG_TEXT_TARGET, answer = index, text = piece.text);
                }
            }
        }
        Some(Ok((index, event)))
    }

    fn failed(&self, error: ApiError) -> ApiError {
        self.span.failed(&error);
        error
    }

    async fn collect<F: EventFormatter>(mut self, mut formatter: F) -> Result<Response, ApiError> {
        let mut chunks = Vec::new();
        while let Some(event) = self.next().await {
            let (index, event) = event?;
            chunks.extend(formatter.chunks(index, event));
        }
        Ok(Json(formatter.response(chunks, self.usage)).into_response())
    }
}

/// A stream being written.
struct ResponseStream<F> {
    active: ActiveRequest,
    formatter: F,
    ready: VecDeque<Frame>,
    over: bool,
}

impl<F: EventFormatter> ResponseStream<F> {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.over {
                return None;
            }
            match self.active.next().await {
                Some(Ok((index, event))) => {
                    self.ready = frames::<F>(&self.formatter.chunks(index, event));
                }
                Some(Err(error)) => {
                    self.ready.push_back(self.formatter.failure(&error));
                    self.over = true;
                }
                None => {
                    self.ready = frames::<F>(&self.formatter.end(self.active.usage));
                    if F::FRAMING == Framing::EventsUntilDone {
                        self.ready.push_back(Frame { name: None, data: "[DONE]".into() });
                    }
                    self.over = true;
                }
            }
        }
    }
}

/// All choices of a prompt share it, so it is counted with the first of them only.
fn count(usage: &mut Usage, first: bool, done: &Done) {
    if first {
        usage.prompt_tokens += done.prompt_tokens;
        usage.prompt_tokens_details.cached_tokens += done.reused_tokens;
    }
    usage.completion_tokens += done.answer_tokens;
    usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_engine::batching::{AnswerTimes, Reason};

    #[test]
    fn each_prompt_counts_once_and_every_answer() {
        let mut usage = Usage::default();
        let done = |prompt_tokens| Done {
            reason: Reason::Stop,
            prompt_tokens,
            reused_tokens: 2,
            answer_tokens: 5,
            times: AnswerTimes::default(),
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
