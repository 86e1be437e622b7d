//! `/v1/chat/completions`.

use super::generate::generate;
use crate::error::{ApiError, Refusals};
use crate::models::Models;
use crate::request::prepare_chat;
use crate::response::ChatFormatter;
use crate::wire::{ChatRequest, ChatResponse, NamedEvent};
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use std::sync::Arc;

/// Answers a conversation; with `stream` as server-sent events of `ChatChunk`.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    request_body = ChatRequest,
    responses(
        (status = 200, content((ChatResponse = "application/json"), (NamedEvent = "text/event-stream"))),
        Refusals,
    ),
)]
pub(crate) async fn chat(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    generate(models, request, |app, request: ChatRequest| {
        let prepared = prepare_chat(app, &request)?;
        let formatter = ChatFormatter::new(&app.name, &prepared);
        Ok((prepared, formatter))
    })
    .await
}
