//! `/v1/completions`.

use crate::app::App;
use crate::asking;
use crate::body::read_json;
use crate::error::{ApiError, Refusals};
use crate::serve::unix_s;
use crate::telling::{CompletionTeller, answer};
use crate::wire::{CompletionAnswer, CompletionRequest};
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use std::sync::Arc;
use std::time::Instant;

/// Continues text; with `stream` as server-sent events of the same shape.
#[utoipa::path(
    post,
    path = "/v1/completions",
    request_body = CompletionRequest,
    responses(
        (status = 200, content((CompletionAnswer = "application/json"), (String = "text/event-stream"))),
        Refusals,
    ),
)]
pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let request: CompletionRequest = read_json(request, &app.options.limits).await?;
    let mut prepared = super::prepare(&app, move |app| asking::completion(app, &request)).await?;
    let echo = std::mem::take(&mut prepared.echo);
    let teller = CompletionTeller::new(&app.options.model_name, unix_s(), echo);
    answer(app, prepared, teller, started).await
}
