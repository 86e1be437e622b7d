//! One file per route.

pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod health;
pub(crate) mod models;
mod openapi;
pub(crate) mod room;

pub use openapi::openapi_json;

use crate::app::App;
use crate::asking::Prepared;
use crate::error::ApiError;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use std::sync::Arc;

/// Templates, tokens and grammars are computed beside the threads that serve others.
async fn prepare(
    app: &Arc<App>,
    work: impl FnOnce(&App) -> Result<Prepared, ApiError> + Send + 'static,
) -> Result<Prepared, ApiError> {
    let app = Arc::clone(app);
    let prepared = tokio::task::spawn_blocking(move || work(&app)).await;
    prepared.unwrap_or_else(|_| Err(ApiError::server("the request could not be prepared")))
}

/// `POST /v1/embeddings`: the engine gives none, and says so.
pub(crate) async fn embeddings() -> ApiError {
    let message = "this server generates text; it gives no embeddings";
    ApiError::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", message)
}

/// `GET /openapi.json`.
pub(crate) async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json())
}

/// Anything else.
pub(crate) async fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not_found", "there is no such route; see /openapi.json")
}

/// The route exists, for another method.
pub(crate) async fn wrong_method() -> ApiError {
    let message = "this route takes another method; see /openapi.json";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
