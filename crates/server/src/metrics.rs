//! Prometheus: what the batching thread counted, read at each scrape, and what only the
//! server sees: statuses and times to the first token.

use crate::gate::Gate;
use axum::http::StatusCode;
use motley_engine::batching::Health;
use motley_engine::blocks::resident::ExpertPlaces;
use motley_engine::{BatchFigures, Batching, EnergyCounter, Joules};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Content type of the text format.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Everything that is counted.
pub(crate) struct Metrics {
    registry: Registry,
    statuses: Family<StatusLabel, Counter>,
    first_token: Histogram,
    whole_answer: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: u16,
}

impl Metrics {
    pub(crate) fn new(batching: Batching, gate: Arc<Gate>, energy: Arc<EnergyCounter>) -> Self {
        let mut registry = Registry::with_prefix("motley");
        let statuses = Family::<StatusLabel, Counter>::default();
        let seconds = || Histogram::new(exponential_buckets(0.005, 2.0, 16));
        let (first_token, whole_answer) = (seconds(), seconds());
        registry.register("http_responses", "Responses by status", statuses.clone());
        registry.register(
            "time_to_first_token_seconds",
            "From the request to the first piece of its response",
            first_token.clone(),
        );
        registry.register(
            "request_seconds",
            "From the request to the end of its response",
            whole_answer.clone(),
        );
        registry.register_collector(Box::new(AtScrape { batching, gate, energy }));
        Self { registry, statuses, first_token, whole_answer }
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

    /// The text Prometheus reads.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).map(|()| text)
    }
}

/// Reads the figures of the batching thread, of the gate and of meters at each scrape.
struct AtScrape {
    batching: Batching,
    gate: Arc<Gate>,
    energy: Arc<EnergyCounter>,
}

impl Debug for AtScrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtScrape")
    }
}

impl Collector for AtScrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let figures = self.batching.figures();
        for (name, help, value) in counters(&figures) {
            one(&mut encoder, name, help, &ConstCounter::new(value))?;
        }
        for (name, help, value) in gauges(&figures) {
            one(&mut encoder, name, help, &ConstGauge::new(value))?;
        }
        for (name, help, value) in self.gauges() {
            one(&mut encoder, name, help, &ConstGauge::new(value))?;
        }
        let places = self.batching.places();
        if let Some(here) = places.and_then(ExpertPlaces::in_memory) {
            let here = ConstGauge::new(here as i64);
            one(&mut encoder, "experts_in_memory", "Experts in memory, of all layers", &here)?;
        }
        if let Some(places) = places.filter(|places| places.on_devices()) {
            let here = ConstGauge::new(places.in_devices() as i64);
            one(&mut encoder, "experts_on_devices", "Experts on devices, of all layers", &here)?;
        }
        if let Some(joules) = self.energy.joules(&|phase| figures.busy_in(phase)) {
            energy(&mut encoder, joules)?;
        }
        let busy = ConstCounter::new(figures.busy.as_secs_f64());
        one(&mut encoder, "compute_seconds", "Time spent computing", &busy)?;
        let decode = ConstCounter::new(figures.decode_busy.as_secs_f64());
        one(&mut encoder, "decode_seconds", "Of it in steps that only decoded", &decode)
    }
}

impl AtScrape {
    fn gauges(&self) -> [Row<i64>; 3] {
        let answering = matches!(self.batching.health(), Health::Answering);
        let held = i64::try_from(self.gate.held_bytes()).unwrap_or(i64::MAX);
        let preparing = self.gate.waiting() as i64;
        [
            ("engine_answering", "1 while steps succeed, 0 when they fail", answering.into()),
            ("requests_preparing", "Requests being prepared or about to be", preparing),
            ("held_body_bytes", "Bytes of large bodies held", held),
        ]
    }
}

/// A figure that nobody knows is absent, never 0.
fn energy(encoder: &mut DescriptorEncoder<'_>, joules: Joules) -> Result<(), std::fmt::Error> {
    let (source, joules) = match joules {
        Joules::Metered(joules) => ("meter", joules),
        Joules::Modelled(joules) => ("model", joules),
    };
    let counter = ConstCounter::new(joules);
    let help = "Energy since the start: by meter at all times, by model while computing";
    let of_type = counter.metric_type();
    let mut encoder = encoder.encode_descriptor("energy_joules", help, None, of_type)?;
    counter.encode(encoder.encode_family(&[("source", source)])?)
}

fn one<M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &M,
) -> Result<(), std::fmt::Error> {
    let encoder = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
    metric.encode(encoder)
}

type Row<T> = (&'static str, &'static str, T);

fn counters(figures: &BatchFigures) -> Vec<Row<u64>> {
    let mut rows = vec![
        ("requests_answered", "Requests answered", figures.answered),
        ("requests_cancelled", "Requests whose client went away", figures.cancelled),
        ("requests_failed", "Requests that ended with an error", figures.failed),
        (
            "requests_sent_back",
            "Requests recomputed because the KV cache was full",
            figures.planner.sent_back,
        ),
        ("prompt_tokens", "Prompt tokens computed", figures.prompt_tokens),
        ("reused_prompt_tokens", "Prompt tokens not computed again", figures.planner.reused_tokens),
        ("loaded_prompt_tokens", "Of them read from disk", figures.planner.loaded_tokens),
        ("answer_tokens", "Tokens sampled", figures.answer_tokens),
        ("steps", "Steps computed", figures.steps),
        ("decode_steps", "Steps in which streams only decoded", figures.decode_steps),
        ("expert_blocks", "Routed-expert blocks run", figures.seam.blocks),
        ("delegated_blocks", "Splits that were not a known block", figures.seam.delegated),
    ];
    if let Some(stream) = &figures.stream {
        rows.extend([
            ("expert_lookups", "Experts routed to", stream.counts.lookups),
            ("expert_hits", "Of them in memory", stream.counts.hits),
            ("expert_guesses", "Experts read on a guess", stream.counts.guessed_loads),
            ("expert_read_bytes", "Expert bytes read from disk", stream.disk.bytes),
            ("expert_read_errors", "Expert reads that failed", stream.disk.errors),
        ]);
    }
    rows
}

fn gauges(figures: &BatchFigures) -> [Row<i64>; 6] {
    let planner = &figures.planner;
    [
        ("requests_waiting", "Requests without a sequence", planner.waiting as i64),
        ("requests_active", "Requests being answered", planner.active as i64),
        ("prefixes_kept", "Finished sequences kept as prefixes", planner.kept as i64),
        ("kv_cells_used", "KV cells taken", i64::from(planner.cells_used)),
        ("kv_cells", "KV cells there are", i64::from(planner.cells)),
        ("longest_step_microseconds", "The longest step", figures.longest_step.as_micros() as i64),
    ]
}
