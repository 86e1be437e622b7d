//! What only the server counts: statuses and times to the first token. Figures of engines are read
//! in `scrape`.

use axum::http::StatusCode;
use motley_engine::EnergyCounter;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

/// Everything that is counted.
pub(crate) struct Metrics {
    pub(crate) energy: Arc<EnergyCounter>,
    statuses: Family<StatusLabel, Counter>,
    first_token: Histogram,
    whole_answer: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: u16,
}

impl Metrics {
    pub(crate) fn new(energy: Arc<EnergyCounter>) -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.005, 2.0, 16));
        let (first_token, whole_answer) = (seconds(), seconds());
        Self { energy, statuses: Family::default(), first_token, whole_answer }
    }

    pub(crate) fn answered_http(&self, status: StatusCode) {
        self.statuses.get_or_create(&StatusLabel { status: status.as_u16() }).inc();
    }

    pub(crate) fn first_token(&self, time: Duration) {
        self.first_token.observe(time.as_secs_f64());
    }

    pub(crate) fn whole_answer(&self, time: Duration) {
        self.whole_answer.observe(time.as_secs_f64());
    }

    /// Names them for who reads them.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("http_responses", "Responses by status", self.statuses.clone());
        registry.register(
            "time_to_first_token_seconds",
            "From the request to the first piece of its response",
            self.first_token.clone(),
        );
        registry.register(
            "request_seconds",
            "From the request to the end of its response",
            self.whole_answer.clone(),
        );
    }
}
