//! `/infill`.

use super::generate::generate;
use crate::error::{ApiError, Refusals};
use crate::models::Models;
use crate::request::prepare_infill;
use crate::response::InfillFormatter;
use crate::wire::{InfillRequest, InfillResponse, NamedEvent};
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use std::sync::Arc;

/// Fills the gap in a text, if the model has tokens for gaps; with `stream` as server-sent events of the
/// same shape.
#[utoipa::path(
    post,
    path = "/infill",
    request_body = InfillRequest,
    responses(
        (status = 200, content((InfillResponse = "application/json"), (NamedEvent = "text/event-stream"))),
        Refusals,
    ),
)]
pub(crate) async fn infill(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    generate(models, request, |app, request: InfillRequest| {
        let prepared = prepare_infill(app, &request)?;
        let formatter = InfillFormatter::new(&app.name, &prepared);
        Ok((prepared, formatter))
    })
    .await
}
