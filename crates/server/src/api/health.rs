//! `/health`, `/ready`, `/metrics`: for gateways and monitors.

use crate::app::App;
use crate::error::ApiError;
use crate::models::Models;
use crate::scrape::{self, CONTENT_TYPE};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use motley_engine::batching::Health;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The process answers, and could answer requests: a restart would not help.
#[utoipa::path(
    get,
    path = "/health",
    responses(
        (status = 200, description = "It answers"),
        (status = 503, body = crate::error::ErrorBody),
    ),
)]
pub(crate) async fn health(State(models): State<Arc<Models>>) -> Result<Json<Value>, ApiError> {
    models.check_alive()?;
    Ok(Json(json!({ "status": "ok" })))
}

/// Requests are answered: the engine works, the queue has room, no shutdown has begun. Anyone
/// may ask, so reasons that may name files stay in the log.
#[utoipa::path(
    get,
    path = "/ready",
    responses(
        (status = 200, description = "Requests are taken"),
        (status = 503, body = crate::error::ErrorBody),
    ),
)]
pub(crate) async fn ready(State(models): State<Arc<Models>>) -> Result<Json<Value>, ApiError> {
    let waiting = models.queued() + models.gate.waiting();
    let not = |code, message: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, message);
    if models.draining.load(Relaxed) {
        return Err(not("shutting_down", "the server is shutting down"));
    }
    models.check_alive()?;
    let failing = |app: &Arc<App>| matches!(app.batching.health(), Health::Failing { .. });
    if models.apps().iter().any(failing) {
        let message = "the engine could not compute the last step; the server's log says why";
        return Err(not("engine_failing", message));
    }
    if waiting >= models.options.limits.waiting {
        return Err(not("queue_full", "the queue is full"));
    }
    Ok(Json(json!({ "status": "ready", "waiting": waiting })))
}

/// Figures in Prometheus' text format.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")),
)]
pub(crate) async fn metrics(
    State(models): State<Arc<Models>>,
) -> Result<impl IntoResponse, ApiError> {
    let text =
        scrape::text(&models).map_err(|_| ApiError::server("the figures cannot be written"))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}
