//! Prometheus: what engines counted, read at each scrape, beside what the server counts itself.

use crate::app::App;
use crate::models::Models;
use crate::vllm_names;
use crate::workers;
use motley_engine::batching::Health;
use motley_engine::blocks::resident::ExpertPlaces;
use motley_engine::{BatchFigures, Joules};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt::Debug;
use std::sync::Arc;

/// Content type of the text format.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text Prometheus reads.
pub(crate) fn text(models: &Arc<Models>) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("motley");
    models.metrics.register(&mut registry);
    registry.register_collector(Box::new(AtScrape { models: Arc::clone(models) }));
    let mut text = String::new();
    encode_registry(&mut text, &registry)?;
    encode_registry(&mut text, &vllm_names::registry(models))?;
    encode_eof(&mut text).map(|()| text)
}

/// Reads the figures of engines, of the gate and of meters at each scrape.
struct AtScrape {
    models: Arc<Models>,
}

impl Debug for AtScrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtScrape")
    }
}

impl Collector for AtScrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let apps = self.models.apps();
        let of_each = EachModel { apps: &apps, named: self.models.offered.len() > 1 };
        let figures = |app: &App| app.batching.figures();
        of_each.encode(&mut encoder, |app| counters(&figures(app)), ConstCounter::new)?;
        of_each.encode(&mut encoder, |app| seconds(&figures(app)), ConstCounter::new)?;
        of_each.encode(&mut encoder, gauges, ConstGauge::new)?;
        for (name, help, value) in self.gauges() {
            let value = ConstGauge::new(value);
            let of_type = value.metric_type();
            value.encode(encoder.encode_descriptor(name, help, None, of_type)?)?;
        }
        workers::encode(&mut encoder, &apps)?;
        match self.models.metrics.energy.joules(&|phase| self.models.busy_in(phase)) {
            Some(joules) => energy(&mut encoder, joules),
            None => Ok(()),
        }
    }
}

impl AtScrape {
    fn gauges(&self) -> [Row<i64>; 2] {
        let gate = &self.models.gate;
        let held = i64::try_from(gate.held_bytes()).unwrap_or(i64::MAX);
        [
            ("requests_preparing", "Requests being prepared or about to be", gate.waiting() as i64),
            ("held_body_bytes", "Bytes of large bodies held", held),
        ]
    }
}

/// Figures of the models that are loaded: with their names where there are several.
struct EachModel<'a> {
    apps: &'a [Arc<App>],
    named: bool,
}

impl EachModel<'_> {
    /// Every figure once, with the value of each model that has it.
    fn encode<T: Copy, M: EncodeMetric + TypedMetric>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        rows: impl Fn(&App) -> Vec<Row<T>>,
        metric: fn(T) -> M,
    ) -> Result<(), std::fmt::Error> {
        let all: Vec<_> = self.apps.iter().map(|app| (app.name.as_str(), rows(app))).collect();
        let mut done: Vec<&str> = Vec::new();
        for &(name, help, _) in all.iter().flat_map(|(_, rows)| rows) {
            if done.contains(&name) {
                continue;
            }
            done.push(name);
            let mut encoder = encoder.encode_descriptor(name, help, None, M::TYPE)?;
            let has = |(model, rows): &'_ (&'_ str, Vec<Row<T>>)| {
                rows.iter().find(|row| row.0 == name).map(|row| (model.to_string(), row.2))
            };
            let values: Vec<(String, T)> = all.iter().filter_map(has).collect();
            match (&values[..], self.named) {
                ([(_, value)], false) => metric(*value).encode(encoder)?,
                (values, _) => {
                    for (model, value) in values {
                        metric(*value).encode(encoder.encode_family(&[("model", &**model)])?)?;
                    }
                }
            }
        }
        Ok(())
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

type Row<T> = (&'static str, &'static str, T);

fn counters(figures: &BatchFigures) -> Vec<Row<u64>> {
    let mut rows = vec![
        ("requests_answered", "Requests answered", figures.answered),
        ("requests_cancelled", "Requests whose client went away", figures.cancelled),
        ("requests_late", "Requests whose deadline passed", figures.late),
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

fn seconds(figures: &BatchFigures) -> Vec<Row<f64>> {
    vec![
        ("compute_seconds", "Time spent computing", figures.busy.as_secs_f64()),
        ("decode_seconds", "Of it in steps that only decoded", figures.decode_busy.as_secs_f64()),
    ]
}

fn gauges(app: &App) -> Vec<Row<i64>> {
    let figures = app.batching.figures();
    let planner = &figures.planner;
    let answering = matches!(app.batching.health(), Health::Answering);
    let longest_us = figures.longest_step.as_micros() as i64;
    let mut rows = vec![
        ("engine_answering", "1 while steps succeed, 0 when they fail", answering.into()),
        ("requests_waiting", "Requests without a sequence", planner.waiting as i64),
        ("requests_active", "Requests being answered", planner.active as i64),
        ("prefixes_kept", "Finished sequences kept as prefixes", planner.kept as i64),
        ("kv_cells_used", "KV cells taken, kept prefixes included", planner.cells_used.into()),
        (
            "kv_cells_active",
            "Of them those of requests being answered",
            planner.cells_active.into(),
        ),
        ("kv_cells", "KV cells there are", i64::from(planner.cells)),
        ("longest_step_microseconds", "The longest step", longest_us),
    ];
    let places = app.batching.places();
    if let Some(here) = places.and_then(ExpertPlaces::in_memory) {
        rows.push(("experts_in_memory", "Experts in memory, of all layers", here as i64));
    }
    if let Some(places) = places.filter(|places| places.on_devices()) {
        let here = places.in_devices() as i64;
        rows.push(("experts_on_devices", "Experts on devices, of all layers", here));
    }
    rows
}
