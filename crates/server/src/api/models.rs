//! `/v1/models`: the models that are served, loaded or not.

use crate::error::ApiError;
use crate::models::Models;
use crate::wire::{Model, ModelList};
use axum::Json;
use axum::extract::{Path, State};
use std::sync::Arc;

/// The models that are served.
#[utoipa::path(get, path = "/v1/models", responses((status = 200, body = ModelList)))]
pub(crate) async fn list(State(models): State<Arc<Models>>) -> Json<ModelList> {
    let data = models.offered.iter().map(|offered| model(&models, &offered.name)).collect();
    Json(ModelList { object: "list", data })
}

/// One model by name.
#[utoipa::path(
    get,
    path = "/v1/models/{model}",
    params(("model" = String, Path, description = "Its name")),
    responses((status = 200, body = Model), (status = 404, body = crate::error::ErrorBody)),
)]
pub(crate) async fn one(
    State(models): State<Arc<Models>>,
    Path(name): Path<String>,
) -> Result<Json<Model>, ApiError> {
    match models.offered.iter().find(|offered| offered.name == name) {
        Some(offered) => Ok(Json(model(&models, &offered.name))),
        None => Err(models.unknown()),
    }
}

fn model(models: &Models, name: &str) -> Model {
    let id = name.to_owned();
    Model { id, object: "model", created: models.started_unix_s, owned_by: "motley" }
}
