//! The page at `/`: one file in the binary, nothing loaded from elsewhere.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse};

/// Chat and dashboard.
const PAGE: &str = include_str!("page.html");

/// The page asks this server only, and shows no other's pages.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// `GET /`.
pub(crate) async fn page() -> impl IntoResponse {
    let policy: (HeaderName, HeaderValue) =
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    ([policy], Html(PAGE))
}
