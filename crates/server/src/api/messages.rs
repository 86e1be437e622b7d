//! `/v1/messages` and `/v1/messages/count_tokens`: Anthropic's API.

use super::generate::{asked, generate};
use crate::dialect::AnthropicRefusals;
use crate::error::ApiError;
use crate::models::Models;
use crate::request::{count_tokens, prepare_messages};
use crate::response::MessagesFormatter;
use crate::wire::{
    AnthropicConversation, MessagesRequest, MessagesResponse, NamedEvent, TokenCount,
};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use std::sync::Arc;

/// Answers a conversation as Anthropic's API does; with `stream` as server-sent events of
/// `MessagesEvent`.
#[utoipa::path(
    post,
    path = "/v1/messages",
    request_body = MessagesRequest,
    responses(
        (status = 200, content((MessagesResponse = "application/json"), (NamedEvent = "text/event-stream"))),
        AnthropicRefusals,
    ),
)]
pub(crate) async fn messages(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    generate(models, request, |app, request: MessagesRequest| {
        let prepared = prepare_messages(app, request)?;
        let formatter = MessagesFormatter::new(&app.name, &prepared);
        Ok((prepared, formatter))
    })
    .await
}

/// Counts the tokens of a prompt and computes nothing.
#[utoipa::path(
    post,
    path = "/v1/messages/count_tokens",
    request_body = AnthropicConversation,
    responses((status = 200, body = TokenCount), AnthropicRefusals),
)]
pub(crate) async fn count(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Json<TokenCount>, ApiError> {
    let input_tokens = asked(&models, request, count_tokens).await?.made;
    Ok(Json(TokenCount { input_tokens }))
}
