//! `/v1/chat/completions`.

use crate::app::App;
use crate::asking;
use crate::body::read_json;
use crate::error::{ApiError, ErrorBody};
use crate::serve::unix_s;
use crate::telling::{ChatTeller, answer};
use crate::wire::{ChatAnswer, ChatRequest};
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use std::sync::Arc;
use std::time::Instant;

/// Answers a conversation; with `stream` as server-sent events of `ChatChunk`.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    request_body = ChatRequest,
    responses(
        (status = 200, content((ChatAnswer = "application/json"), (String = "text/event-stream"))),
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
pub(crate) async fn chat(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let request: ChatRequest = read_json(request, &app.options.limits).await?;
    let prepared = super::prepare(&app, move |app| asking::chat(app, &request)).await?;
    let model = app.options.model_name.clone();
    let teller = ChatTeller::new(&model, unix_s(), prepared.format, prepared.asks.len());
    answer(app, prepared, teller, started).await
}
