//! `/v1/completions`.

use crate::app::App;
use crate::asking;
use crate::body::read_json;
use crate::error::{ApiError, ErrorBody};
use crate::serve::unix_s;
use crate::telling::{CompletionTeller, answer};
use crate::wire::{CompletionAnswer, CompletionRequest};
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use std::sync::Arc;
use std::time::Instant;

/// Continues text; with `stream` as server-sent events of the same shape.
#[utoipa::path(
    post,
    path = "/v1/completions",
    request_body = CompletionRequest,
    responses(
        (status = 200, content((CompletionAnswer = "application/json"), (String = "text/event-stream"))),
        (status = 400, body = ErrorBody, description = "A field is wrong"),
        (status = 401, body = ErrorBody, description = "The key is wrong"),
        (status = 403, body = ErrorBody, description = "The host is not this server"),
        (status = 404, body = ErrorBody, description = "Another model is served"),
        (status = 408, body = ErrorBody, description = "The body took too long"),
        (status = 413, body = ErrorBody, description = "The body is too large"),
        (status = 415, body = ErrorBody, description = "The body is not JSON"),
        (status = 429, body = ErrorBody, description = "The queue is full"),
        (status = 503, body = ErrorBody, description = "The server is shutting down"),
    ),
)]
pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let request: CompletionRequest = read_json(request, &app.options.limits).await?;
    let mut prepared = super::prepare(&app, move |app| asking::completion(app, &request)).await?;
    let echo = std::mem::take(&mut prepared.echo);
    let teller = CompletionTeller::new(&app.options.model_name, unix_s(), echo);
    answer(app, prepared, teller, started).await
}
