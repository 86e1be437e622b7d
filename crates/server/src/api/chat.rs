//! `/v1/chat/completions`.

use crate::app::App;
use crate::asking;
use crate::body::read_json;
use crate::error::{ApiError, Refusals};
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
        Refusals,
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
