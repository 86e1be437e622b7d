//! The OpenAPI document, generated from the types.

use super::{
    chat, completions, dashboard, embeddings, health, infill, messages, models, ollama,
    ollama_models, responses, room, settings, tokens,
};
use axum::http::header;
use axum::response::IntoResponse;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(title = "Motley", description = "An OpenAI-compatible server"),
    paths(
        models::list,
        models::one,
        chat::chat,
        completions::complete,
        responses::respond,
        responses::get,
        responses::delete,
        messages::messages,
        messages::count,
        ollama::chat,
        ollama::generate,
        ollama_models::tags,
        ollama_models::ps,
        ollama_models::show,
        ollama_models::version,
        infill::infill,
        embeddings::embeddings,
        embeddings::rerank,
        embeddings::ollama_embed,
        tokens::tokenize,
        tokens::detokenize,
        health::health,
        health::ready,
        health::metrics,
        dashboard::dashboard,
        room::room,
        settings::settings,
    ),
    components(schemas(
        crate::wire::ChatChunk,
        crate::wire::ResponsesEvent,
        crate::wire::MessagesEvent,
        crate::wire::AnthropicErrorBody,
        crate::wire::OllamaError,
        crate::error::ErrorBody,
    ))
)]
struct Document;

/// `GET /openapi.json`.
pub(crate) async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json())
}

/// The OpenAPI document as JSON.
pub fn openapi_json() -> String {
    Document::openapi().to_json().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_routes_and_their_types() {
        let document: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        for path in
            ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/models", "/metrics"]
        {
            assert!(paths.contains_key(path), "{path}");
        }
        let request = document["components"]["schemas"]["ChatRequest"].to_string();
        for field in ["messages", "temperature", "response_format", "max_completion_tokens"] {
            assert!(request.contains(field) || request.contains("SamplingFields"), "{field}");
        }
    }
}
