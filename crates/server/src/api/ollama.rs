//! `/api/chat` and `/api/generate`: Ollama's API.

use super::generate::{Asked, Prepare, answer, asked};
use crate::dialect::OllamaRefusals;
use crate::error::ApiError;
use crate::models::Models;
use crate::request::{PreparedRequest, prepare_ollama_chat, prepare_ollama_generate};
use crate::response::{OllamaFormatter, OllamaShape, loaded};
use crate::wire::{OllamaAnswer, OllamaChatRequest, OllamaGenerateRequest};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Answers a conversation; unless `stream` is false as lines of JSON of the same shape.
#[utoipa::path(
    post,
    path = "/api/chat",
    request_body = OllamaChatRequest,
    responses(
        (status = 200, content((OllamaAnswer = "application/json"), (OllamaAnswer = "application/x-ndjson"))),
        OllamaRefusals,
    ),
)]
pub(crate) async fn chat(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    respond(models, request, OllamaShape::Chat, prepare_ollama_chat).await
}

/// Answers one text, or with `raw` continues it; unless `stream` is false as lines of JSON of the
/// same shape.
#[utoipa::path(
    post,
    path = "/api/generate",
    request_body = OllamaGenerateRequest,
    responses(
        (status = 200, content((OllamaAnswer = "application/json"), (OllamaAnswer = "application/x-ndjson"))),
        OllamaRefusals,
    ),
)]
pub(crate) async fn generate(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    respond(models, request, OllamaShape::Generate, prepare_ollama_generate).await
}

/// A request that says nothing is told that the model is there.
async fn respond<R: DeserializeOwned + Send + 'static>(
    models: Arc<Models>,
    request: Request<Body>,
    shape: OllamaShape,
    prepare: Prepare<R, Option<PreparedRequest>>,
) -> Result<Response, ApiError> {
    let Asked { made, by } = asked(&models, request, prepare).await?;
    match made {
        None => Ok(Json(loaded(shape, &by.app.name)).into_response()),
        Some(prepared) => {
            let formatter = OllamaFormatter::new(shape, &by.app.name, &prepared);
            answer(by, prepared, formatter).await
        }
    }
}
