//! One layer of one decoded token as a picture, and files written.

use anyhow::{Context, Result, bail};
use motley_sched::spans::{RowNames, Spans};
use motley_sim::gantt::{Window, gantt};
use motley_trace::{Phase, Trace, Visit};
use std::path::Path;

/// What a picture of one layer says above it.
pub(super) struct Drawn<'a> {
    pub(super) name: &'a str,
    pub(super) units: &'a str,
    pub(super) layer: Option<u16>,
}

pub(super) fn draw(path: &Path, spans: &Spans, trace: &Trace, drawn: &Drawn<'_>) -> Result<()> {
    let layers = layers_of(trace);
    let layer = drawn.layer.or(layers.get(layers.len() / 2).copied()).unwrap_or(0);
    let visit = middle_visit(trace, layer);
    let Some((from, to)) = spans.window_of(layer, visit) else {
        let (first, last) = (layers.first().unwrap_or(&0), layers.last().unwrap_or(&0));
        bail!("--layer {layer} was not drawn: layers {first} to {last} have experts");
    };
    let Drawn { name, units, .. } = drawn;
    let title = format!("{name}: layer {layer} of one decoded token (layer.expert; {units})");
    let rows = RowNames::default();
    write(path, &gantt(spans, &Window { title: &title, from, to, rows })?)
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Layers with visits, in order.
fn layers_of(trace: &Trace) -> Vec<u16> {
    let mut layers: Vec<u16> = trace.visits.iter().map(|visit| visit.layer).collect();
    layers.sort_unstable();
    layers.dedup();
    layers
}

/// Of the visits of `layer`, the number of that in the middle of decoding.
fn middle_visit(trace: &Trace, layer: u16) -> usize {
    let of_layer = || trace.visits.iter().filter(|visit| visit.layer == layer);
    let prefill = of_layer().filter(|visit: &&Visit| visit.phase == Phase::Prefill).count();
    (prefill + of_layer().count()) / 2
}
