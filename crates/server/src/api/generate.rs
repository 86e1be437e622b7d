//! What all routes that read a prompt do: read, wait for the model, prepare, answer. The shapes are
//! theirs.

use crate::app::App;
use crate::body::{ReadBody, parse, read_body};
use crate::error::ApiError;
use crate::gate::Ticket;
use crate::keys::{AskedBy, Caller};
use crate::models::{InUse, Models};
use crate::priority::give_way;
use crate::request::{PreparedRequest, Texts, Wanted};
use crate::response::{EventFormatter, respond, submit};
use crate::telemetry::RequestSpan;
use crate::wire::{TextsUsage, Usage};
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use motley_engine::batching::{Ask, Event};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Reads a body of type `R`, checks it with `prepare` and sends what the engine generates in
/// the shapes of the formatter that `prepare` returns.
pub(super) async fn generate<R, F>(
    models: Arc<Models>,
    request: Request<Body>,
    prepare: Prepare<R, (PreparedRequest, F)>,
) -> Result<Response, ApiError>
where
    R: DeserializeOwned + Send + 'static,
    F: EventFormatter,
{
    let Asked { made: (prepared, formatter), by } = asked(&models, request, prepare).await?;
    answer(by, prepared, formatter).await
}

/// Checks a request and makes something of it.
pub(super) type Prepare<R, T> = fn(&App, R) -> Result<T, ApiError>;

/// What was made of a request, and who asked.
pub(super) struct Asked<T> {
    pub(super) made: T,
    pub(super) by: Asker,
}

/// Who asked for which model, since when, and the place at the gate that is held until the engine
/// has the request in its own queue.
pub(super) struct Asker {
    pub(super) app: InUse,
    asker: AskedBy,
    started: Instant,
    ticket: Ticket,
    span: RequestSpan,
}

/// Reads a body of type `R` and makes of it what `prepare` says, when its model is there and its
/// turn has come.
pub(super) async fn asked<R, T>(
    models: &Arc<Models>,
    request: Request<Body>,
    prepare: Prepare<R, T>,
) -> Result<Asked<T>, ApiError>
where
    R: DeserializeOwned + Send + 'static,
    T: Send + 'static,
{
    let started = Instant::now();
    let caller: Caller = request.extensions().get().copied().unwrap_or_default();
    let span = RequestSpan::of(&request);
    let ReadBody { bytes, ticket } = read_body(models, request).await?;
    let (bytes, wanted) = wanted(models, bytes).await?;
    let model = models.find(wanted.model.as_deref())?;
    span.asks_for(wanted.model.as_deref(), &models.offered[model].name);
    let asker = caller.asks(wanted.priority, wanted.deadline);
    let app = in_time(asker, started, models.use_model(model, wanted.keep_alive)).await?;
    app.check_alive()?;
    in_time(asker, started, ticket.turn(models.queued())).await?;
    let preparing = app.app();
    // JSON, templates, tokens and schemas take long enough to hold up other connections. The
    // ticket goes along: a client that leaves does not end what is being prepared.
    let made = tokio::task::spawn_blocking(move || {
        give_way();
        let request: R = parse(&bytes, preparing.prompt_values())?;
        drop(bytes);
        prepare(&preparing, request).map(|made| (made, ticket))
    });
    let (made, ticket) = made.await.unwrap_or_else(|_| Err(not_prepared()))?;
    Ok(Asked { made, by: Asker { app, asker, started, ticket, span } })
}

/// What comes before the asker's deadline.
async fn in_time<T>(
    asker: AskedBy,
    started: Instant,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    match left(asker, started) {
        Some(left) => {
            tokio::time::timeout(left, work).await.unwrap_or_else(|_| Err(ApiError::late()))
        }
        None => work.await,
    }
}

/// Time left to who has a deadline.
fn left(asker: AskedBy, started: Instant) -> Option<Duration> {
    asker.deadline.map(|time| time.saturating_sub(started.elapsed()))
}

/// Who asks, with the time that is left.
fn now(asker: AskedBy, started: Instant) -> Result<AskedBy, ApiError> {
    let deadline = left(asker, started);
    match deadline.is_some_and(|left| left.is_zero()) {
        true => Err(ApiError::late()),
        false => Ok(AskedBy { deadline, ..asker }),
    }
}

/// Which model a body asks for. Few are looked at at once: a large one takes milliseconds.
async fn wanted(models: &Models, bytes: Vec<u8>) -> Result<(Vec<u8>, Wanted), ApiError> {
    let most_values = models.prompt_values();
    let Ok(_turn) = models.looking.acquire().await else { return Err(not_prepared()) };
    let looked = tokio::task::spawn_blocking(move || {
        give_way();
        Wanted::of(&bytes, most_values).map(|wanted| (bytes, wanted))
    });
    looked.await.unwrap_or_else(|_| Err(not_prepared()))
}

fn not_prepared() -> ApiError {
    ApiError::server("the request could not be prepared")
}

/// Hands a prepared request to the engine and sends what it generates.
pub(super) async fn answer<F: EventFormatter>(
    by: Asker,
    prepared: PreparedRequest,
    formatter: F,
) -> Result<Response, ApiError> {
    let asker = now(by.asker, by.started)?;
    let submitted = submit(&by.app, asker, prepared, by.span)?;
    drop(by.ticket);
    respond(by.app, submitted, formatter, by.started).await
}

/// Vectors of texts, in their order.
pub(super) struct Vectors {
    /// Who made them.
    pub(super) app: InUse,
    pub(super) vectors: Vec<Vec<f32>>,
    pub(super) usage: TextsUsage,
}

/// The engine's vectors of texts. Only a few are in its queue at once: others get their turn.
pub(super) async fn vectors(by: Asker, texts: Texts) -> Result<Vectors, ApiError> {
    let Asker { app, asker, started, ticket, span } = by;
    // Others are prepared while the engine computes.
    drop(ticket);
    let at_once = usize::from(app.batching.options().sequences);
    let tokens = texts.iter().map(|text| text.len()).sum();
    span.submit();
    let vector = |prompt| {
        let app = &app;
        async move {
            let AskedBy { client, deadline } = now(asker, started)?;
            let ask = Ask { client, deadline, prompt, embeds: true, ..Ask::default() };
            vector_of(app, app.batching.submit(ask)?).await
        }
    };
    let vectors = stream::iter(texts).map(vector).buffered(at_once).try_collect().await?;
    app.metrics.whole_answer(started.elapsed());
    span.answered(&Usage { prompt_tokens: tokens, total_tokens: tokens, ..Usage::default() });
    let usage = TextsUsage { prompt_tokens: tokens, total_tokens: tokens };
    Ok(Vectors { app, vectors, usage })
}

async fn vector_of(app: &App, mut events: mpsc::Receiver<Event>) -> Result<Vec<f32>, ApiError> {
    loop {
        match events.recv().await {
            Some(Event::Vector(vector)) => return Ok(vector),
            Some(Event::Failed(reason)) => return Err(app.failed(&reason)),
            Some(Event::Late) => return Err(ApiError::late()),
            Some(Event::Piece(_) | Event::Done(_)) => {}
            None => return Err(app.failed("the engine has stopped")),
        }
    }
}
