//! Which requests have a span: all that ask a model for something, and may.

use super::export::{Counts, Telemetry};
use super::span::{Operation, RequestSpan};
use crate::error::ApiError;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use opentelemetry_sdk::trace::SdkTracer;
use std::sync::Arc;

/// The routes, with a span for each request where somebody is told.
pub(crate) fn traced<S>(routes: Router<S>, telemetry: &Telemetry) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    match telemetry.tracer() {
        Some(tracer) => routes.route_layer(middleware::from_fn_with_state(tracer, trace)),
        None => routes,
    }
}

/// Handlers find the span in the request; one that is answered as a stream outlives this.
async fn trace(
    State((tracer, counts)): State<(SdkTracer, Arc<Counts>)>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let operation = Operation::of(request.uri().path());
    let span = RequestSpan::begin(tracer, counts, operation, request.headers());
    request.extensions_mut().insert(span.clone());
    let response = next.run(request).await;
    match response.extensions().get::<ApiError>() {
        Some(error) => span.failed(error),
        None => span.replied(),
    }
    response
}
