//! The routes, and the checks before them.

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::keys::Caller;
use crate::models::Models;
use crate::options::ServeOptions;
use crate::origin::CorsOrigin;
use crate::telemetry::traced;
use crate::{api, auth, host, page};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// All routes.
pub(crate) fn router(models: Arc<Models>) -> Router {
    let guarded = traced(generating(), &models.options.telemetry)
        .route("/v1/models", get(api::models::list))
        .route("/v1/models/{model}", get(api::models::one))
        .route("/v1/responses/{id}", get(api::responses::get).delete(api::responses::delete))
        .route("/v1/messages/count_tokens", post(api::messages::count))
        .route("/api/tags", get(api::ollama_models::tags))
        .route("/api/ps", get(api::ollama_models::ps))
        .route("/api/show", post(api::ollama_models::show))
        .route("/api/version", get(api::ollama_models::version))
        .route("/tokenize", post(api::tokens::tokenize))
        .route("/detokenize", post(api::tokens::detokenize))
        .route("/metrics", get(api::health::metrics))
        .route("/motley/dashboard", get(api::dashboard::dashboard))
        .route("/motley/room", get(api::room::room))
        .route("/motley/settings", get(api::settings::settings))
        .route("/openapi.json", get(api::openapi::openapi))
        .fallback(api::refused::not_found)
        .method_not_allowed_fallback(api::refused::wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&models), guard));
    let open = page::router()
        .route("/health", get(api::health::health))
        .route("/ready", get(api::health::ready));
    let routes = open.merge(guarded).with_state(Arc::clone(&models));
    let routes = match cors(&models.options) {
        Some(layer) => routes.layer(layer),
        None => routes,
    };
    routes
        .layer(middleware::from_fn(well_formed))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(translate))
        .layer(middleware::from_fn_with_state(models, count))
}

/// The routes that ask a model for text, vectors or scores.
fn generating() -> Router<Arc<Models>> {
    Router::new()
        .route("/v1/chat/completions", post(api::chat::chat))
        .route("/v1/completions", post(api::completions::complete))
        .route("/v1/responses", post(api::responses::respond))
        .route("/v1/messages", post(api::messages::messages))
        .route("/api/chat", post(api::ollama::chat))
        .route("/api/generate", post(api::ollama::generate))
        .route("/v1/embeddings", post(api::embeddings::embeddings))
        .route("/v1/rerank", post(api::embeddings::rerank))
        .route("/api/embed", post(api::embeddings::ollama_embed))
        .route("/infill", post(api::infill::infill))
}

async fn guard(
    State(models): State<Arc<Models>>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    match checked(&models.options, &request) {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Who has a key of their own is told apart by that.
fn checked(options: &ServeOptions, request: &Request<Body>) -> Result<Option<Caller>, ApiError> {
    match auth::check_key(&options.keys, request.headers())? {
        Some(number) => Ok(Caller::of_key(number, &options.keys[number])),
        None => {
            host::check_host(options.address.ip(), requested_host(request)?)?;
            Ok(None)
        }
    }
}

/// Errors are told as the API of the path tells them.
async fn translate(request: Request<Body>, next: Next) -> Response {
    let dialect = Dialect::of(request.uri().path());
    dialect.translate(next.run(request).await)
}

/// A request that does not say plainly where it goes reaches no route.
async fn well_formed(request: Request<Body>, next: Next) -> Response {
    match requested_host(&request).map(drop) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn requested_host(request: &Request<Body>) -> Result<Option<&str>, ApiError> {
    host::requested_host(request.version(), request.uri(), request.headers())
}

async fn count(State(models): State<Arc<Models>>, request: Request<Body>, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    models.metrics.answered_http(response.status());
    tracing::debug!(target: "motley", %method, path, status = response.status().as_u16());
    let headers = response.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        headers.entry(name).or_insert(value);
    }
    if models.draining.load(Relaxed) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

const SECURITY_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

fn cors(options: &ServeOptions) -> Option<CorsLayer> {
    let origin = match options.cors_origin.as_ref()? {
        CorsOrigin::Any => AllowOrigin::any(),
        CorsOrigin::Exact(origin) => AllowOrigin::exact(origin.clone()),
    };
    let headers = [header::AUTHORIZATION, header::CONTENT_TYPE, auth::X_API_KEY];
    let methods = [Method::GET, Method::POST, Method::DELETE];
    Some(CorsLayer::new().allow_origin(origin).allow_headers(headers).allow_methods(methods))
}

/// A bug in a handler; other connections are not affected.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    let message = "internal error: a bug, please report it";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message).into_response()
}
