//! `/api/tags`, `/api/ps`, `/api/show`, `/api/version`: what is served, in Ollama's words.

use crate::body::{ReadBody, parse, read_body};
use crate::clock::rfc3339;
use crate::dialect::OllamaRefusals;
use crate::error::ApiError;
use crate::models::Models;
use crate::wire::{
    OllamaDetails, OllamaModel, OllamaModels, OllamaShow, OllamaShowRequest, OllamaVersion,
};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use motley_engine::text::output::OutputFormat;
use motley_model::{ModelSpec, Pooling, Quantisation, Sizes};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The models there are.
#[utoipa::path(get, path = "/api/tags", responses((status = 200, body = OllamaModels)))]
pub(crate) async fn tags(State(models): State<Arc<Models>>) -> Json<OllamaModels> {
    let all = (0..models.offered.len()).map(|index| model(&models, index));
    Json(OllamaModels { models: all.collect() })
}

/// The models that are loaded.
#[utoipa::path(get, path = "/api/ps", responses((status = 200, body = OllamaModels)))]
pub(crate) async fn ps(State(models): State<Arc<Models>>) -> Json<OllamaModels> {
    let is_loaded = |index: &usize| models.loaded().apps[*index].is_some();
    let loaded = (0..models.offered.len()).filter(is_loaded);
    Json(OllamaModels { models: loaded.map(|index| model(&models, index)).collect() })
}

/// The server's version.
#[utoipa::path(get, path = "/api/version", responses((status = 200, body = OllamaVersion)))]
pub(crate) async fn version() -> Json<OllamaVersion> {
    Json(OllamaVersion { version: env!("CARGO_PKG_VERSION") })
}

/// All about a model; it is not loaded for that.
#[utoipa::path(
    post,
    path = "/api/show",
    request_body = OllamaShowRequest,
    responses((status = 200, body = OllamaShow), OllamaRefusals),
)]
pub(crate) async fn show(
    State(models): State<Arc<Models>>,
    request: Request<Body>,
) -> Result<Json<OllamaShow>, ApiError> {
    let ReadBody { bytes, ticket } = read_body(&models, request).await?;
    let request: OllamaShowRequest = parse(&bytes, 0)?;
    drop(ticket);
    let model = models.find(request.model.or(request.name).as_deref())?;
    Ok(Json(all_about(&models, model)))
}

fn model(models: &Models, index: usize) -> OllamaModel {
    let offered = &models.offered[index];
    OllamaModel {
        model: offered.name.clone(),
        name: offered.name.clone(),
        modified_at: rfc3339(models.started_unix_s),
        size: Sizes::of(&offered.spec).total_bytes,
        digest: "",
        details: details(&offered.spec),
        context_length: models.longest(index),
    }
}

fn details(spec: &ModelSpec) -> OllamaDetails {
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

fn all_about(models: &Models, index: usize) -> OllamaShow {
    let spec = &models.offered[index].spec;
    let architecture = &spec.architecture;
    let number = |name: &str, value: u64| (format!("{architecture}.{name}"), Value::from(value));
    let model_info = Map::from_iter([
        ("general.architecture".into(), architecture.as_str().into()),
        ("general.parameter_count".into(), Sizes::of(spec).parameters.into()),
        number("context_length", models.longest(index).into()),
        number("block_count", spec.shape.layers.into()),
        number("embedding_length", spec.shape.hidden),
        number("expert_count", spec.experts.into()),
        number("expert_used_count", spec.used.into()),
    ]);
    let template = spec.chat_template.clone().unwrap_or_default();
    let capabilities = [
        ("completion", spec.embedding.is_none()),
        ("embedding", spec.embedding.is_some_and(|texts| texts.pooling != Pooling::Rank)),
        ("tools", template.contains("tools")),
        ("thinking", OutputFormat::of(&template, &[]).thoughts.is_some()),
    ];
    OllamaShow {
        modified_at: rfc3339(models.started_unix_s),
        template,
        details: details(spec),
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
