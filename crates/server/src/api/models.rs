//! `/v1/models`: the one model that is served.

use crate::app::App;
use crate::error::ApiError;
use crate::wire::{Model, ModelList};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use std::sync::Arc;

/// The models that are served.
#[utoipa::path(get, path = "/v1/models", responses((status = 200, body = ModelList)))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<ModelList> {
    Json(ModelList { object: "list", data: vec![model(&app)] })
}

/// One model by name.
#[utoipa::path(
    get,
    path = "/v1/models/{model}",
    params(("model" = String, Path, description = "Its name")),
    responses((status = 200, body = Model), (status = 404, body = crate::error::ErrorBody)),
)]
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Json<Model>, ApiError> {
    let model = model(&app);
    if model.id == name {
        return Ok(Json(model));
    }
    let message = format!("unknown model; this server has `{}`", model.id);
    Err(ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message))
}

fn model(app: &App) -> Model {
    let id = app.options.model_name.clone();
    Model { id, object: "model", created: app.started_unix_s, owned_by: "motley" }
}
