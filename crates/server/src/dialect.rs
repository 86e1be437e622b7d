//! In whose words a request is refused: each API has a shape of errors of its own. What is
//! refused, and with which status, is the same in all of them.

use crate::error::{ApiError, refusals};
use crate::wire::{AnthropicError, AnthropicErrorBody, OllamaError};
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::IntoResponses;
use utoipa::openapi::{self, RefOr};

/// Whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
    Ollama,
}

impl Dialect {
    /// By the path of a request, so that what is refused before a route is chosen is understood
    /// as well.
    pub(crate) fn of(path: &str) -> Self {
        match path {
            "/v1/messages" | "/v1/messages/count_tokens" => Self::Anthropic,
            path if path.starts_with("/api/") => Self::Ollama,
            _ => Self::OpenAi,
        }
    }

    /// The same response, an error in these words.
    pub(crate) fn translate(self, response: Response) -> Response {
        let Some(error) = response.extensions().get::<ApiError>().cloned() else { return response };
        match self {
            Self::OpenAi => response,
            Self::Anthropic => with_body(response, &anthropic(&error)),
            Self::Ollama => with_body(response, &ollama(&error)),
        }
    }
}

/// An error as Anthropic's API writes it.
pub(crate) fn anthropic(error: &ApiError) -> AnthropicErrorBody {
    let r#type = match error.status() {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    };
    let message = error.message().to_owned();
    AnthropicErrorBody { r#type: "error", error: AnthropicError { r#type, message } }
}

/// The error statuses of Anthropic's routes, for the OpenAPI document.
pub(crate) struct AnthropicRefusals;

impl IntoResponses for AnthropicRefusals {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        refusals::<AnthropicErrorBody>()
    }
}

/// An error as Ollama's API writes it.
pub(crate) fn ollama(error: &ApiError) -> OllamaError {
    OllamaError { error: error.message().to_owned() }
}

/// The error statuses of Ollama's routes, for the OpenAPI document.
pub(crate) struct OllamaRefusals;

impl IntoResponses for OllamaRefusals {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        refusals::<OllamaError>()
    }
}

fn with_body(response: Response, body: &impl Serialize) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(serde_json::to_vec(body).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn errors_are_written_in_the_words_of_the_route() {
        let told = |path: &str| {
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", "wait");
            Dialect::of(path).translate(error.into_response())
        };
        let text = async |response: Response| {
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let response = told("/v1/messages");
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(
            text(response).await,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"wait"}}"#
        );
        assert_eq!(text(told("/api/chat")).await, r#"{"error":"wait"}"#);
        assert!(text(told("/v1/completions")).await.contains(r#""code":"queue_full""#));
    }
}
