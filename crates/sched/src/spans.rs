//! What ran when, as a driver recorded it in real or virtual time, and its export in Chrome's
//! trace format (open with `chrome://tracing` or Perfetto). Records; draws nothing, decides
//! nothing.

use motley_cost::Nanos;
use motley_trace::ExpertKey;
use serde_json::{Value, json};

use crate::scheduler::Purpose;
use crate::work::Unit;

/// Most spans kept; a drive of any length stays within memory.
pub const MAX_SPANS: usize = 1 << 20;

/// Something that took time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub kind: SpanKind,
    pub begins: Nanos,
    pub ends: Nanos,
}

/// What a span was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Attention and the like, before a layer's experts.
    Dense { layer: u16 },
    /// A transfer.
    Load { key: ExpertKey, purpose: Purpose },
    /// A computation.
    Compute {
        key: ExpertKey,
        unit: Unit,
        /// For how many tokens.
        tokens: u32,
    },
}

/// The first [`MAX_SPANS`] spans of a drive.
#[derive(Debug, Clone, Default)]
pub struct Spans {
    spans: Vec<Span>,
    /// Spans past the limit.
    pub left_out: u64,
}

impl Spans {
    /// Keeps a span, or counts it when there are too many.
    pub fn push(&mut self, span: Span) {
        if self.spans.len() < MAX_SPANS { self.spans.push(span) } else { self.left_out += 1 }
    }

    /// The spans in the order they began to be carried out.
    pub fn iter(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter()
    }

    /// The stretch of one layer: from its dense part to that of the layer after. `visit` counts
    /// the layer's visits from 0.
    pub fn window_of(&self, layer: u16, visit: usize) -> Option<(Nanos, Nanos)> {
        let is_dense = |span: &&Span| matches!(span.kind, SpanKind::Dense { .. });
        let mut dense = self.iter().filter(is_dense);
        let begins = |span: &Span| span.begins;
        let mut left = visit;
        let from = dense.by_ref().find(|span| {
            let wanted = span.kind == SpanKind::Dense { layer };
            let found = wanted && left == 0;
            left -= usize::from(wanted && left > 0);
            found
        })?;
        let last = self.iter().map(|span| span.ends).max()?;
        Some((from.begins, dense.next().map_or(last, begins)))
    }

    /// A JSON document in Chrome's trace format: one row per unit and one for the link.
    pub fn to_chrome_trace(&self, rows: &RowNames<'_>) -> Value {
        chrome_trace(&[("", self)], rows)
    }
}

/// Several recordings as one document in Chrome's trace format, each a process of its name.
pub fn chrome_trace(recordings: &[(&str, &Spans)], rows: &RowNames<'_>) -> Value {
    let mut events = Vec::new();
    for (process, (name, spans)) in recordings.iter().enumerate() {
        if !name.is_empty() {
            events.push(json!({
                "ph": "M", "name": "process_name", "pid": process, "args": { "name": name },
            }));
        }
        events.extend(row_names(spans, rows, process));
        events.extend(spans.iter().map(|span| event(span, process)));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

fn row_names(spans: &Spans, rows: &RowNames<'_>, process: usize) -> Vec<Value> {
    let first = [rows.dense, rows.fast, rows.link].into_iter().zip(0..);
    let lanes = spans.iter().filter_map(|span| match span.kind {
        SpanKind::Compute { unit: Unit::Home(lane), .. } => Some(lane),
        _ => None,
    });
    let mut names: Vec<Value> = first.map(|(name, row)| row_name(process, row, name)).collect();
    match lanes.max() {
        Some(0) => names.push(row_name(process, HOME, rows.home)),
        Some(last) => names.extend(
            (0..=last).map(|lane| row_name(process, HOME + lane, &format!("{} {lane}", rows.home))),
        ),
        None => {}
    }
    names
}

/// What the rows of a trace are called.
#[derive(Debug, Clone, Copy)]
pub struct RowNames<'a> {
    /// Everything between blocks.
    pub dense: &'a str,
    pub fast: &'a str,
    pub link: &'a str,
    /// The home units; several are numbered.
    pub home: &'a str,
}

impl Default for RowNames<'_> {
    fn default() -> Self {
        Self { dense: "dense", fast: "fast unit", link: "link", home: "home unit" }
    }
}

/// Row of the first home unit; dense, fast unit and link come before.
const HOME: u16 = 3;

fn row_name(process: usize, row: u16, name: &str) -> Value {
    json!({ "ph": "M", "name": "thread_name", "pid": process, "tid": row, "args": { "name": name } })
}

fn event(span: &Span, process: usize) -> Value {
    let (row, name, category) = match span.kind {
        SpanKind::Dense { layer } => (0, format!("layer {layer}"), "dense"),
        SpanKind::Load { key, purpose: Purpose::Demand } => (2, key.to_string(), "demand"),
        SpanKind::Load { key, purpose: Purpose::Guess } => (2, key.to_string(), "guess"),
        SpanKind::Compute { key, unit, tokens } => {
            let row = match unit {
                Unit::Fast => 1,
                Unit::Home(lane) => HOME + lane,
            };
            (row, format!("{key} x{tokens}"), "compute")
        }
    };
    json!({
        "ph": "X", "pid": process, "tid": row, "name": name, "cat": category,
        "ts": span.begins.as_us(), "dur": (span.ends - span.begins).as_us(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(unit: Unit, begins: u64, ends: u64) -> Span {
        let kind = SpanKind::Compute { key: ExpertKey::new(0, 0), unit, tokens: 1 };
        Span { kind, begins: Nanos(begins), ends: Nanos(ends) }
    }

    #[test]
    fn rows_are_called_what_they_are() {
        let mut spans = Spans::default();
        spans.push(compute(Unit::Home(0), 1000, 3000));
        let rows = RowNames { home: "CPU", ..RowNames::default() };
        let trace = spans.to_chrome_trace(&rows);
        let events = trace["traceEvents"].as_array().expect("events");
        assert_eq!(events[3]["args"]["name"], "CPU");
        assert_eq!((events[4]["ts"].as_f64(), events[4]["dur"].as_f64()), (Some(1.0), Some(2.0)));
        let both = chrome_trace(&[("run", &spans), ("simulator", &spans)], &rows);
        let events = both["traceEvents"].as_array().expect("events");
        assert_eq!(events.len(), 12);
        let last = &events[11];
        assert_eq!((last["pid"].as_u64(), last["tid"].as_u64()), (Some(1), Some(3)));
        assert_eq!(events[6]["args"]["name"], "simulator");
    }
}
