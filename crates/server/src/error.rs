//! Errors as the API writes them: `{"error": {message, type, param, code}}`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use motley_engine::SubmitError;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::openapi::{self, Content, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

/// Seconds after which a refused client may try again.
const RETRY_AFTER_S: u32 = 1;

/// A response that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: Option<&'static str>,
    param: Option<&'static str>,
    message: String,
}

/// The body of an error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    pub error: ErrorFields,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorFields {
    pub message: String,
    /// `invalid_request_error`, `server_error`, …
    pub r#type: &'static str,
    /// The field at fault.
    pub param: Option<&'static str>,
    /// For programs: `queue_full`, `model_not_found`, …
    pub code: Option<&'static str>,
}

/// The error statuses of a request for text, for the OpenAPI document.
pub(crate) struct Refusals;

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        refusals::<ErrorBody>()
    }
}

/// The error statuses of a request that is read and prepared, told in bodies of type `B`.
pub(crate) fn refusals<B: ToSchema>() -> BTreeMap<String, RefOr<openapi::Response>> {
    let all = [
        ("400", "A field is wrong"),
        ("401", "The key is wrong"),
        ("403", "The host name is not allowed"),
        ("404", "The model is unknown"),
        ("408", "The body took too long"),
        ("413", "The body is too large"),
        ("415", "The body is not JSON"),
        ("429", "The queue is full"),
        ("504", "`deadline_ms` passed before the first token"),
        ("503", "The server is shutting down, holds too much already, or has failed"),
    ];
    let body = Content::new(Some(Ref::from_schema_name(B::name())));
    let response = |description: &str| {
        let response = ResponseBuilder::new().description(description);
        response.content("application/json", body.clone()).build().into()
    };
    all.map(|(status, description)| (status.to_owned(), response(description))).into()
}

impl ApiError {
    /// The request is wrong: 400.
    pub(crate) fn invalid(param: &'static str, message: impl Into<String>) -> Self {
        let (status, message) = (StatusCode::BAD_REQUEST, message.into());
        Self { status, code: None, param: Some(param), message }
    }

    /// The prompt does not fit: 400 under the code clients look for.
    pub(crate) fn too_long(param: &'static str, message: String) -> Self {
        Self { code: Some("context_length_exceeded"), ..Self::invalid(param, message) }
    }

    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code: Some(code), param: None, message: message.into() }
    }

    /// The server's fault: 500.
    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// The request's time was over before there was anything to say: 504.
    pub(crate) fn late() -> Self {
        let message =
            "the deadline passed before the first token; a longer one, or a shorter prompt, helps";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "deadline_exceeded", message)
    }

    /// Of HTTP.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// For people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The JSON body.
    pub(crate) fn body(&self) -> ErrorBody {
        let r#type = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let (message, param, code) = (self.message.clone(), self.param, self.code);
        ErrorBody { error: ErrorFields { message, r#type, param, code } }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        use motley_engine::batching::Refused;
        match error {
            SubmitError::Refused(Refused::QueueFull { .. }) => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "queue_full",
                format!("{error}; try again shortly"),
            ),
            SubmitError::Refused(Refused::TooLong { .. }) => {
                Self::too_long("messages", format!("the prompt is too long: {error}"))
            }
            SubmitError::Refused(Refused::Empty) => Self::invalid("prompt", error.to_string()),
            SubmitError::MakesNoVectors | SubmitError::MakesVectors => {
                Self::invalid("model", error.to_string())
            }
            SubmitError::Closed => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", error.to_string())
            }
            SubmitError::Dead => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "engine_failed", error.to_string())
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body())).into_response();
        let headers = response.headers_mut();
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // For those who tell it in other words.
        response.extensions_mut().insert(self);
        response
    }
}
