//! The span of a request and those of its stages, in the words of the conventions for generative
//! AI (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>). Times of stages in the engine are the
//! engine's.
//!
//! ```text
//!   chat NAME    ├──────────────────────────────────────────┤  arrival to the last byte
//!     prepare    ├────────┤                                    body, model, turn, tokens
//!     queue               ├─────┤                              until the engine begins
//!     prefill                   ├─────────┤                    prompt to the first token
//!       disk                    ├──┤                           of it: waiting for the disk
//!     decode                              ├─────────────┤      first token to the end
//!       disk                              ├─┤
//! ```
//!
//! Waits for the disk are many and short; a `disk` span is as long as all of them together, and
//! lies where its stage begins.

use super::export::Counts;
use crate::error::ApiError;
use crate::response::formatter::finish_reason;
use crate::wire::Usage;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use motley_engine::batching::Done;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Most characters of a name that a client chose.
const MAX_NAME: usize = 128;

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    /// As the conventions call it.
    name: &'static str,
    /// The route, for `http.route`.
    route: &'static str,
}

impl Operation {
    /// Of the route at `path`, which has a span.
    pub(super) fn of(path: &str) -> Self {
        let (name, route) = match path {
            "/v1/chat/completions" => ("chat", "/v1/chat/completions"),
            "/v1/responses" => ("chat", "/v1/responses"),
            "/v1/messages" => ("chat", "/v1/messages"),
            "/api/chat" => ("chat", "/api/chat"),
            "/v1/embeddings" => ("embeddings", "/v1/embeddings"),
            "/api/embed" => ("embeddings", "/api/embed"),
            // Not among the conventions' operations.
            "/v1/rerank" => ("rerank", "/v1/rerank"),
            "/api/generate" => ("text_completion", "/api/generate"),
            "/infill" => ("text_completion", "/infill"),
            _ => ("text_completion", "/v1/completions"),
        };
        Self { name, route }
    }
}

/// A request's span, if it has one; ends when the last clone is gone.
#[derive(Clone, Default)]
pub(crate) struct RequestSpan(Option<Arc<Traced>>);

struct Traced {
    tracer: SdkTracer,
    counts: Arc<Counts>,
    /// Holds the span itself; stages are its children.
    context: Context,
    operation: Operation,
    started: Instant,
    started_at: SystemTime,
    course: Mutex<Course>,
}

/// How it goes.
#[derive(Default)]
struct Course {
    /// When the engine was given it, since it began.
    submitted: Option<Duration>,
    finish_reasons: Vec<StringValue>,
    /// Whether it is known how it ended.
    settled: bool,
}

impl RequestSpan {
    /// Begins now, as part of the trace that `headers` name or as one of its own.
    pub(super) fn begin(
        tracer: SdkTracer,
        counts: Arc<Counts>,
        operation: Operation,
        headers: &HeaderMap,
    ) -> Self {
        let (started, started_at) = (Instant::now(), SystemTime::now());
        let parent = TraceContextPropagator::new().extract(&Parent(headers));
        let builder = SpanBuilder::from_name(operation.name)
            .with_kind(SpanKind::Server)
            .with_start_time(started_at)
            .with_attributes([
                KeyValue::new("gen_ai.operation.name", operation.name),
                KeyValue::new("gen_ai.provider.name", "motley"),
                KeyValue::new("http.route", operation.route),
            ]);
        let span = tracer.build_with_context(builder, &parent);
        let context = parent.with_span(span);
        let course = Mutex::default();
        let traced = Traced { tracer, counts, context, operation, started, started_at, course };
        Self(Some(Arc::new(traced)))
    }

    /// That of a request, if it has one.
    pub(crate) fn of(request: &Request<Body>) -> Self {
        request.extensions().get().cloned().unwrap_or_default()
    }

    /// The model `named` by the client is `name`.
    pub(crate) fn asks_for(&self, named: Option<&str>, name: &str) {
        let Some(traced) = &self.0 else { return };
        let span = traced.context.span();
        span.update_name(format!("{} {name}", traced.operation.name));
        let named: String = named.unwrap_or(name).chars().take(MAX_NAME).collect();
        span.set_attribute(KeyValue::new("gen_ai.request.model", named));
        span.set_attribute(KeyValue::new("gen_ai.response.model", name.to_owned()));
    }

    /// The engine is given it now.
    pub(crate) fn submit(&self) {
        let Some(traced) = &self.0 else { return };
        let now = traced.started.elapsed();
        traced.course().submitted = Some(now);
        traced.stage(&traced.context, Stage::new("prepare", Duration::ZERO, now));
    }

    /// The engine is done with one choice.
    pub(crate) fn choice_done(&self, index: usize, done: &Done) {
        let Some(traced) = &self.0 else { return };
        let mut course = traced.course();
        course.finish_reasons.push(finish_reason(done.reason).into());
        let Some(submitted) = course.submitted else { return };
        drop(course);
        let times = &done.times;
        let begun = submitted + times.waited;
        let first_token = begun + times.prompt;
        for (name, from, time, disk) in [
            ("queue", submitted, times.waited, Duration::ZERO),
            ("prefill", begun, times.prompt, times.prompt_disk),
            ("decode", first_token, times.answer, times.answer_disk),
        ] {
            let mut stage = Stage::new(name, from, time);
            stage.attributes.push(KeyValue::new("motley.choice", index as i64));
            if !disk.is_zero() {
                stage.attributes.push(KeyValue::new("motley.disk_seconds", disk.as_secs_f64()));
            }
            let context = traced.stage(&traced.context, stage);
            if !disk.is_zero() {
                traced.stage(&context, Stage::new("disk", from, disk));
            }
        }
    }

    /// It ends with an error.
    pub(crate) fn failed(&self, error: &ApiError) {
        let Some(traced) = &self.0 else { return };
        let fields = error.body().error;
        traced.fail(fields.code.unwrap_or(fields.r#type));
    }

    /// All choices are done.
    pub(crate) fn answered(&self, usage: &Usage) {
        let Some(traced) = &self.0 else { return };
        let span = traced.context.span();
        let mut course = traced.course();
        course.settled = true;
        let reasons = std::mem::take(&mut course.finish_reasons);
        // Texts that get vectors have no answer that could end.
        if !reasons.is_empty() {
            let reasons = Value::Array(Array::String(reasons));
            span.set_attribute(KeyValue::new("gen_ai.response.finish_reasons", reasons));
        }
        let cached = usage.prompt_tokens_details.cached_tokens;
        for (name, tokens) in [
            ("gen_ai.usage.input_tokens", usage.prompt_tokens),
            ("gen_ai.usage.output_tokens", usage.completion_tokens),
            ("gen_ai.usage.cache_read.input_tokens", cached),
        ] {
            span.set_attribute(KeyValue::new(name, tokens as i64));
        }
    }

    /// A response has begun; without the engine it is all there is.
    pub(super) fn replied(&self) {
        let Some(traced) = &self.0 else { return };
        let mut course = traced.course();
        course.settled |= course.submitted.is_none();
    }
}

/// A part of a request's time.
struct Stage {
    name: &'static str,
    /// Since the request began.
    from: Duration,
    time: Duration,
    attributes: Vec<KeyValue>,
}

impl Stage {
    fn new(name: &'static str, from: Duration, time: Duration) -> Self {
        Self { name, from, time, attributes: Vec::new() }
    }
}

impl Traced {
    /// A span below that of `parent`; its own context.
    fn stage(&self, parent: &Context, stage: Stage) -> Context {
        let begun = self.started_at + stage.from;
        let builder = SpanBuilder::from_name(stage.name)
            .with_kind(SpanKind::Internal)
            .with_start_time(begun)
            .with_attributes(stage.attributes);
        let mut span = self.tracer.build_with_context(builder, parent);
        let recorded = span.is_recording();
        span.end_with_timestamp(begun + stage.time);
        if recorded {
            self.counts.make();
        }
        parent.with_span(span)
    }

    /// It failed, unless it is known already how it ended.
    fn fail(&self, kind: &'static str) {
        if std::mem::replace(&mut self.course().settled, true) {
            return;
        }
        let span = self.context.span();
        span.set_attribute(KeyValue::new("error.type", kind));
        span.set_status(Status::error(kind));
    }

    /// Usable after a panic: nothing panics while it is held.
    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // Where nobody said how it ended: a bug, or a client that went away.
        self.fail(if std::thread::panicking() { "internal" } else { "cancelled" });
        let span = self.context.span();
        if span.is_recording() {
            self.counts.make();
        }
        span.end_with_timestamp(self.started_at + self.started.elapsed());
    }
}

/// Headers that name a parent. What vendors add to it (`tracestate`) would be kept with every span
/// of the queue, so it is not read.
struct Parent<'a>(&'a HeaderMap);

impl Extractor for Parent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        if key != "traceparent" {
            return None;
        }
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent"]
    }
}
