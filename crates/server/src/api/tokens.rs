//! `/tokenize` and `/detokenize`, as llama.cpp's server has them.

use super::generate::asked;
use crate::error::{ApiError, Refusals};
use crate::models::Models;
use crate::request;
use crate::wire::{DetokenizeRequest, DetokenizeResponse, TokenizeRequest, TokenizeResponse};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use std::sync::Arc;

/// The tokens of a text of at most 1 MiB.
#[utoipa::path(
    post,
    path = "/tokenize",
    request_body = TokenizeRequest,
    responses((status = 200, body = TokenizeResponse), Refusals),
)]
pub(crate) async fn tokenize(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Json<TokenizeResponse>, ApiError> {
    Ok(Json(asked(&models, request, request::tokenize).await?.made))
}

/// The text of at most 65536 tokens.
#[utoipa::path(
    post,
    path = "/detokenize",
    request_body = DetokenizeRequest,
    responses((status = 200, body = DetokenizeResponse), Refusals),
)]
pub(crate) async fn detokenize(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Json<DetokenizeResponse>, ApiError> {
    Ok(Json(asked(&models, request, request::detokenize).await?.made))
}
