//! What both routes that generate text do: read, prepare, respond. The shapes are theirs.

use crate::app::App;
use crate::body::{ReadBody, parse, read_body};
use crate::error::ApiError;
use crate::priority::give_way;
use crate::request::PreparedRequest;
use crate::response::{EventFormatter, respond, submit};
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Instant;

/// Reads a body of type `R`, checks it with `prepare` and sends what the engine generates in
/// the shapes of the formatter that `format` returns. The request's place at the gate is held
/// until the engine has it in its own queue.
pub(super) async fn generate<R, F>(
    app: Arc<App>,
    request: Request<Body>,
    prepare: fn(&App, &R) -> Result<PreparedRequest, ApiError>,
    format: fn(&App, &mut PreparedRequest) -> F,
) -> Result<Response, ApiError>
where
    R: DeserializeOwned + Send + 'static,
    F: EventFormatter,
{
    let started = Instant::now();
    let client = request.extensions().get().copied().unwrap_or_default();
    app.check_alive()?;
    let ReadBody { bytes, ticket } = read_body(&app, request).await?;
    ticket.turn(app.queued()).await?;
    let preparing = Arc::clone(&app);
    // JSON, templates, tokens and schemas take long enough to hold up other connections. The
    // ticket goes along: a client that leaves does not end what is being prepared.
    let prepared = tokio::task::spawn_blocking(move || {
        give_way();
        let request: R = parse(&bytes, preparing.prompt_values())?;
        drop(bytes);
        prepare(&preparing, &request).map(|prepared| (prepared, ticket))
    });
    let failed = |_| Err(ApiError::server("the request could not be prepared"));
    let (mut prepared, ticket) = prepared.await.unwrap_or_else(failed)?;
    let formatter = format(&app, &mut prepared);
    let submitted = submit(&app, client, prepared)?;
    drop(ticket);
    respond(app, submitted, formatter, started).await
}
