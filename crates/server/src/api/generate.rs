//! What all routes that read a prompt do: read, prepare, answer. The shapes are theirs.

use crate::app::App;
use crate::body::{ReadBody, parse, read_body};
use crate::error::ApiError;
use crate::gate::Ticket;
use crate::priority::give_way;
use crate::request::PreparedRequest;
use crate::response::{EventFormatter, respond, submit};
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use motley_engine::batching::ClientId;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Instant;

/// Reads a body of type `R`, checks it with `prepare` and sends what the engine generates in
/// the shapes of the formatter that `prepare` returns.
pub(super) async fn generate<R, F>(
    app: Arc<App>,
    request: Request<Body>,
    prepare: Prepare<R, (PreparedRequest, F)>,
) -> Result<Response, ApiError>
where
    R: DeserializeOwned + Send + 'static,
    F: EventFormatter,
{
    let Asked { made: (prepared, formatter), by } = asked(&app, request, prepare).await?;
    answer(app, by, prepared, formatter).await
}

/// Checks a request and makes something of it.
pub(super) type Prepare<R, T> = fn(&App, R) -> Result<T, ApiError>;

/// What was made of a request, and who asked.
pub(super) struct Asked<T> {
    pub(super) made: T,
    pub(super) by: Asker,
}

/// Who asked, since when, and the place at the gate that is held until the engine has the request
/// in its own queue.
pub(super) struct Asker {
    client: ClientId,
    started: Instant,
    ticket: Ticket,
}

/// Reads a body of type `R` and makes of it what `prepare` says, when its turn has come.
pub(super) async fn asked<R, T>(
    app: &Arc<App>,
    request: Request<Body>,
    prepare: Prepare<R, T>,
) -> Result<Asked<T>, ApiError>
where
    R: DeserializeOwned + Send + 'static,
    T: Send + 'static,
{
    let started = Instant::now();
    let client = request.extensions().get().copied().unwrap_or_default();
    app.check_alive()?;
    let ReadBody { bytes, ticket } = read_body(app, request).await?;
    ticket.turn(app.queued()).await?;
    let preparing = Arc::clone(app);
    // JSON, templates, tokens and schemas take long enough to hold up other connections. The
    // ticket goes along: a client that leaves does not end what is being prepared.
    let made = tokio::task::spawn_blocking(move || {
        give_way();
        let request: R = parse(&bytes, preparing.prompt_values())?;
        drop(bytes);
        prepare(&preparing, request).map(|made| (made, ticket))
    });
    let failed = |_| Err(ApiError::server("the request could not be prepared"));
    let (made, ticket) = made.await.unwrap_or_else(failed)?;
    Ok(Asked { made, by: Asker { client, started, ticket } })
}

/// Hands a prepared request to the engine and sends what it generates.
pub(super) async fn answer<F: EventFormatter>(
    app: Arc<App>,
    by: Asker,
    prepared: PreparedRequest,
    formatter: F,
) -> Result<Response, ApiError> {
    let submitted = submit(&app, by.client, prepared)?;
    drop(by.ticket);
    respond(app, submitted, formatter, by.started).await
}
