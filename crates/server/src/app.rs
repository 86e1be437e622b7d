//! The routes, what they share, and the checks before them.

use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::options::ServeOptions;
use crate::room::Heat;
use crate::tools::Format;
use crate::{api, auth, page};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Request, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use motley_engine::Batching;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// What every handler shares.
pub(crate) struct App {
    pub(crate) batching: Batching,
    pub(crate) options: ServeOptions,
    pub(crate) metrics: Metrics,
    pub(crate) heat: Arc<Heat>,
    /// How the model writes calls.
    pub(crate) format: Format,
    /// Whether the model's template shows tools to it.
    pub(crate) shows_tools: bool,
    /// When the server started, in Unix seconds.
    pub(crate) started_unix_s: u64,
    /// Set when the server is told to stop.
    pub(crate) draining: AtomicBool,
}

/// All routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    let guarded = Router::new()
        .route("/v1/models", get(api::models::list))
        .route("/v1/models/{model}", get(api::models::one))
        .route("/v1/chat/completions", post(api::chat::chat))
        .route("/v1/completions", post(api::completions::complete))
        .route("/v1/embeddings", post(api::embeddings))
        .route("/metrics", get(api::health::metrics))
        .route("/motley/room", get(api::room::room))
        .route("/openapi.json", get(api::openapi))
        .fallback(api::not_found)
        .method_not_allowed_fallback(api::wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard));
    let open = Router::new()
        .route("/", get(page::page))
        .route("/health", get(api::health::health))
        .route("/ready", get(api::health::ready));
    let routes = open.merge(guarded).with_state(Arc::clone(&app));
    let routes = match cors(&app.options) {
        Some(layer) => routes.layer(layer),
        None => routes,
    };
    routes
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(app, count))
}

async fn guard(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let key = app.options.api_key.as_deref();
    let checked = auth::check_key(key, request.headers()).and_then(|()| match key {
        Some(_) => Ok(()),
        None => auth::check_host(app.options.address.ip(), request.headers()),
    });
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

async fn count(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    app.metrics.answered_http(response.status());
    tracing::debug!(target: "motley", %method, path, status = response.status().as_u16());
    let headers = response.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        headers.entry(name).or_insert(value);
    }
    if app.draining.load(Relaxed) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

const SECURITY_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

fn cors(options: &ServeOptions) -> Option<CorsLayer> {
    let origin: HeaderValue = options.cors_origin.as_deref()?.parse().ok()?;
    let origin = if origin == "*" { AllowOrigin::any() } else { AllowOrigin::exact(origin) };
    let headers = [header::AUTHORIZATION, header::CONTENT_TYPE];
    let methods = [axum::http::Method::GET, axum::http::Method::POST];
    Some(CorsLayer::new().allow_origin(origin).allow_headers(headers).allow_methods(methods))
}

/// A bug of ours; the others' connections go on.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    let message = "an internal error; please report it";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message).into_response()
}
