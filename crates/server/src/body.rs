//! A request's JSON body, within the limits of size, time and depth.

use crate::error::ApiError;
use crate::options::ServeLimits;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use motley_model::format_bytes;
use serde::de::DeserializeOwned;

/// Reads the body as JSON. serde_json refuses more than 128 levels.
pub(crate) async fn read_json<T: DeserializeOwned>(
    request: Request<Body>,
    limits: &ServeLimits,
) -> Result<T, ApiError> {
    let (parts, body) = request.into_parts();
    check_type(&parts.headers)?;
    let collected = Limited::new(body, limits.body_bytes).collect();
    let bytes = match tokio::time::timeout(limits.body_time, collected).await {
        Err(_) => {
            let message = "the body did not arrive in time";
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message));
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let limit = format_bytes(limits.body_bytes as u64);
            let message = format!("the body is larger than {limit}");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
        }
        Ok(Err(_)) => return Err(ApiError::invalid("body", "the body was cut off")),
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    serde_json::from_slice(&bytes).map_err(|error| ApiError::invalid("body", error.to_string()))
}

/// Accepts only a type that a foreign page cannot send without a preflight request.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.unwrap_or("").split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "send JSON with `Content-Type: application/json`";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message))
}
