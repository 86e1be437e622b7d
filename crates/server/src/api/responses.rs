//! `/v1/responses`: OpenAI's newer API, and the responses it keeps.

use super::generate::generate;
use crate::error::{ApiError, ErrorBody, Refusals};
use crate::models::Models;
use crate::request::prepare_response;
use crate::response::ResponsesFormatter;
use crate::wire::{DeletedResponse, NamedEvent, ResponseObject, ResponsesRequest};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Answers a conversation; with `stream` as server-sent events of `ResponsesEvent`.
#[utoipa::path(
    post,
    path = "/v1/responses",
    request_body = ResponsesRequest,
    responses(
        (status = 200, content((ResponseObject = "application/json"), (NamedEvent = "text/event-stream"))),
        Refusals,
    ),
)]
pub(crate) async fn respond(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    generate(models, request, |app, request: ResponsesRequest| {
        let mut asked = prepare_response(app, request)?;
        let (model, kept) = (&app.name, Arc::clone(&app.kept));
        let formatter = ResponsesFormatter::new(model, kept, &mut asked);
        Ok((asked.prepared, formatter))
    })
    .await
}

/// A response that is kept.
#[utoipa::path(
    get,
    path = "/v1/responses/{id}",
    params(("id" = String, Path, description = "Of the response")),
    responses((status = 200, body = ResponseObject), (status = 404, body = ErrorBody)),
)]
pub(crate) async fn get(
    State(models): State<Arc<Models>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let kept = models.kept.get(&id).ok_or_else(unknown)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], kept.response.clone()).into_response())
}

/// Keeps a response no longer.
#[utoipa::path(
    delete,
    path = "/v1/responses/{id}",
    params(("id" = String, Path, description = "Of the response")),
    responses((status = 200, body = DeletedResponse), (status = 404, body = ErrorBody)),
)]
pub(crate) async fn delete(
    State(models): State<Arc<Models>>,
    Path(id): Path<String>,
) -> Result<Json<DeletedResponse>, ApiError> {
    if !models.kept.forget(&id) {
        return Err(unknown());
    }
    Ok(Json(DeletedResponse { id, object: "response", deleted: true }))
}

fn unknown() -> ApiError {
    let message = "there is no such response: it was never kept, or not any more";
    ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
}
