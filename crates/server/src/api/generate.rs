//! What both routes that generate text do: read, prepare, respond. The shapes are theirs.

use crate::app::App;
use crate::body::read_json;
use crate::error::ApiError;
use crate::request::PreparedRequest;
use crate::response::{EventFormatter, respond};
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Instant;

/// Reads a body of type `R`, checks it with `prepare` and sends what the engine generates in
/// the shapes of the formatter that `format` returns.
pub(super) async fn generate<R, F>(
    app: Arc<App>,
    request: Request<Body>,
    prepare: fn(&App, &R) -> Result<PreparedRequest, ApiError>,
    format: fn(&App, &mut PreparedRequest) -> F,
) -> Result<Response, ApiError>
where
    R: DeserializeOwned + Send + 'static,
    F: EventFormatter,
{
    let started = Instant::now();
    let request: R = read_json(request, &app.options.limits).await?;
    let preparing = Arc::clone(&app);
    // Templates, tokens and grammars take long enough to hold up other connections.
    let prepared = tokio::task::spawn_blocking(move || prepare(&preparing, &request)).await;
    let failed = |_| Err(ApiError::server("the request could not be prepared"));
    let mut prepared = prepared.unwrap_or_else(failed)?;
    let formatter = format(&app, &mut prepared);
    respond(app, prepared, formatter, started).await
}
