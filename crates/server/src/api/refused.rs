//! Paths and methods that are not served, refused in the API's own words.

use crate::error::ApiError;
use axum::http::StatusCode;

/// Any other path.
pub(crate) async fn not_found() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not_found", "unknown route; see /openapi.json")
}

/// A known path with another method.
pub(crate) async fn wrong_method() -> ApiError {
    let message = "this route does not support the method; see /openapi.json";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
