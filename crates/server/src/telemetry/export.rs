//! Spans on their way to a collector: queued by the SDK, sent by a thread of its own. What does not
//! fit in the queue or cannot be sent is lost and counted; no answer waits for it.

use super::collector::{Collector, CollectorError};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanData, SpanExporter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// For one batch, tries included.
const SEND_TIME: Duration = Duration::from_secs(10);
/// For what is left when the server ends.
const CLOSE_TIME: Duration = Duration::from_secs(3);
/// The name of this program, and of what makes its spans.
const NAME: &str = "motley";

/// Who is told of requests: a collector, or by default nobody.
#[derive(Debug, Clone, Default)]
pub struct Telemetry(Option<Sending>);

#[derive(Debug, Clone)]
struct Sending {
    provider: SdkTracerProvider,
    counts: Arc<Counts>,
}

/// Spans so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    made: AtomicU64,
    sent: AtomicU64,
}

impl Counts {
    /// One more was made.
    pub(super) fn make(&self) {
        self.made.fetch_add(1, Relaxed);
    }
}

impl Telemetry {
    /// Starts the thread that sends to `collector`.
    pub fn start(collector: Collector) -> Result<Self, CollectorError> {
        let Collector { url, client, .. } = collector;
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url.clone())
            .with_timeout(SEND_TIME)
            .build()
            .map_err(|error| CollectorError::Exporter { reason: error.to_string() })?;
        let counts = Arc::<Counts>::default();
        let failing = AtomicBool::new(false);
        let exporter = Counting { exporter, url, counts: Arc::clone(&counts), failing };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource())
            .build();
        Ok(Self(Some(Sending { provider, counts })))
    }

    /// What makes spans, and counts them; `None` where nobody is told.
    pub(super) fn tracer(&self) -> Option<(SdkTracer, Arc<Counts>)> {
        let Sending { provider, counts } = self.0.as_ref()?;
        Some((provider.tracer(NAME), Arc::clone(counts)))
    }

    /// Sends what is left, within seconds, and says what was lost.
    pub(crate) async fn close(&self) {
        let Some(Sending { provider, counts }) = self.0.clone() else { return };
        let closing =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(CLOSE_TIME));
        // How it went is seen in the counts.
        let _ = closing.await;
        let (made, sent) = (counts.made.load(Relaxed), counts.sent.load(Relaxed));
        if sent < made {
            let lost = made - sent;
            tracing::warn!("{lost} of {made} spans of traces did not reach the collector");
        }
    }
}

/// Who sends, as variables (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`) say.
fn resource() -> Resource {
    let own = [("service.name", NAME), ("service.version", env!("CARGO_PKG_VERSION"))];
    let resource = Resource::builder_empty()
        .with_attributes(own.map(|(key, value)| KeyValue::new(key, value)))
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()));
    match std::env::var("OTEL_SERVICE_NAME") {
        Ok(name) if !name.is_empty() => resource.with_service_name(name).build(),
        _ => resource.build(),
    }
}

/// An exporter that counts, and says once when it cannot send and once when it can again.
#[derive(Debug)]
struct Counting<E> {
    exporter: E,
    url: String,
    counts: Arc<Counts>,
    failing: AtomicBool,
}

impl<E: SpanExporter> SpanExporter for Counting<E> {
    /// Never fails for the SDK, which would say so for every batch.
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let result = self.exporter.export(batch).await;
        let failed_before = self.failing.swap(result.is_err(), Relaxed);
        match result {
            Ok(()) => {
                self.counts.sent.fetch_add(spans, Relaxed);
                if failed_before {
                    tracing::warn!("traces reach {} again", self.url);
                }
            }
            Err(error) if !failed_before => {
                tracing::warn!("traces are lost, {} cannot be reached: {error}", self.url);
            }
            Err(_) => {}
        }
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
