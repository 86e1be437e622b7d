//! `/api/tags`, `/api/ps`, `/api/show`, `/api/version`: what is served, in Ollama's words.

use super::generate::asked;
use crate::app::App;
use crate::clock::rfc3339;
use crate::dialect::OllamaRefusals;
use crate::error::ApiError;
use crate::request::check_model;
use crate::wire::{
    OllamaDetails, OllamaModel, OllamaModels, OllamaShow, OllamaShowRequest, OllamaVersion,
};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use motley_model::{Quantisation, Sizes};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The models there are: the one that is served.
#[utoipa::path(get, path = "/api/tags", responses((status = 200, body = OllamaModels)))]
pub(crate) async fn tags(State(app): State<Arc<App>>) -> Json<OllamaModels> {
    Json(OllamaModels { models: vec![model(&app)] })
}

/// The models that are loaded: the same one.
#[utoipa::path(get, path = "/api/ps", responses((status = 200, body = OllamaModels)))]
pub(crate) async fn ps(State(app): State<Arc<App>>) -> Json<OllamaModels> {
    Json(OllamaModels { models: vec![model(&app)] })
}

/// The server's version.
#[utoipa::path(get, path = "/api/version", responses((status = 200, body = OllamaVersion)))]
pub(crate) async fn version() -> Json<OllamaVersion> {
    Json(OllamaVersion { version: env!("CARGO_PKG_VERSION") })
}

/// All about the model.
#[utoipa::path(
    post,
    path = "/api/show",
    request_body = OllamaShowRequest,
    responses((status = 200, body = OllamaShow), OllamaRefusals),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Json<OllamaShow>, ApiError> {
    let shown = asked(&app, request, |app, request: OllamaShowRequest| {
        check_model(app, request.model.or(request.name).as_deref())?;
        Ok(all_about(app))
    });
    Ok(Json(shown.await?.made))
}

fn model(app: &App) -> OllamaModel {
    let name = app.options.model_name.clone();
    OllamaModel {
        model: name.clone(),
        name,
        modified_at: rfc3339(app.started_unix_s),
        size: Sizes::of(app.batching.engine().spec()).total_bytes,
        digest: "",
        details: details(app),
        context_length: app.batching.longest(),
    }
}

fn details(app: &App) -> OllamaDetails {
    let spec = app.batching.engine().spec();
    let Quantisation { routed, dense, .. } = Quantisation::of(spec);
    let level = routed.first().or(dense.first());
    OllamaDetails {
        parent_model: "",
        format: "gguf",
        family: spec.architecture.clone(),
        families: vec![spec.architecture.clone()],
        parameter_size: parameter_size(Sizes::of(spec).parameters),
        quantization_level: level.map_or_else(String::new, |share| share.ty.to_string()),
    }
}

fn all_about(app: &App) -> OllamaShow {
    let engine = app.batching.engine();
    let spec = engine.spec();
    let architecture = &spec.architecture;
    let number = |name: &str, value: u64| (format!("{architecture}.{name}"), Value::from(value));
    let model_info = Map::from_iter([
        ("general.architecture".into(), architecture.as_str().into()),
        ("general.parameter_count".into(), Sizes::of(spec).parameters.into()),
        number("context_length", app.batching.longest().into()),
        number("block_count", spec.shape.layers.into()),
        number("embedding_length", spec.shape.hidden),
        number("expert_count", spec.experts.into()),
        number("expert_used_count", spec.used.into()),
    ]);
    let capabilities = [
        ("completion", true),
        ("tools", app.shows_tools),
        ("thinking", app.format.thoughts.is_some()),
    ];
    OllamaShow {
        modified_at: rfc3339(app.started_unix_s),
        template: engine.chat_template().unwrap_or_default(),
        details: details(app),
        model_info,
        capabilities: capabilities
            .into_iter()
            .filter(|(_, has)| *has)
            .map(|(name, _)| name)
            .collect(),
    }
}

/// Such as `30.5B` or `135M`.
fn parameter_size(parameters: u64) -> String {
    match parameters as f64 {
        many if many >= 1e9 => format!("{:.1}B", many / 1e9),
        few => format!("{:.0}M", few / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(parameter_size(30_532_122_624), "30.5B");
        assert_eq!(parameter_size(134_515_008), "135M");
    }
}
