//! `/motley/settings`: what the page begins with.

use super::dashboard::OfModel;
use crate::error::ApiError;
use crate::models::Models;
use axum::Json;
use axum::extract::{Query, State};
use motley_engine::Sampling;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The largest temperature that a request may ask for.
const TEMPERATURE_MAX: f32 = 2.0;

/// How tokens are chosen where a person says nothing, and how long an answer may get.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageSettings {
    /// Of the server.
    version: &'static str,
    /// Tokens of the longest conversation with its answer.
    context_tokens: u32,
    /// What the model's file says, else the same as `motley run` takes.
    temperature: f32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    repeat_penalty: f32,
}

/// What the page begins with, of any model, loaded or not.
#[utoipa::path(
    get,
    path = "/motley/settings",
    params(OfModel),
    responses((status = 200, body = PageSettings), (status = 404, body = crate::error::ErrorBody)),
)]
pub(crate) async fn settings(
    State(models): State<Arc<Models>>,
    Query(of): Query<OfModel>,
) -> Result<Json<PageSettings>, ApiError> {
    let model = models.find(of.model.as_deref())?;
    let sampling = Sampling::of_model(&models.offered[model].spec.sampling);
    Ok(Json(PageSettings {
        version: env!("CARGO_PKG_VERSION"),
        context_tokens: models.longest(model),
        temperature: sampling.temperature.min(TEMPERATURE_MAX),
        top_k: sampling.top_k,
        top_p: sampling.top_p,
        min_p: sampling.min_p,
        repeat_penalty: sampling.repeat_penalty,
    }))
}
