//! `/v1/completions`.

use super::generate::generate;
use crate::error::{ApiError, Refusals};
use crate::models::Models;
use crate::request::prepare_completion;
use crate::response::CompletionFormatter;
use crate::wire::{CompletionRequest, CompletionResponse, NamedEvent};
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use std::sync::Arc;

/// Continues text; with `stream` as server-sent events of the same shape.
#[utoipa::path(
    post,
    path = "/v1/completions",
    request_body = CompletionRequest,
    responses(
        (status = 200, content((CompletionResponse = "application/json"), (NamedEvent = "text/event-stream"))),
        Refusals,
    ),
)]
pub(crate) async fn complete(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    generate(models, request, |app, request: CompletionRequest| {
        let mut prepared = prepare_completion(app, &request)?;
        let formatter = CompletionFormatter::new(&app.name, &mut prepared);
        Ok((prepared, formatter))
    })
    .await
}
