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
    /// What it was.
    pub kind: SpanKind,
    /// When it began.
    pub begins: Nanos,
    /// When it ended.
    pub ends: Nanos,
}

/// What a span was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Attention and the like, before a layer's experts.
    Dense {
        /// The layer.
        layer: u16,
    },
    /// A transfer.
    Load {
        /// The expert.
        key: ExpertKey,
        /// Demanded or guessed.
        purpose: Purpose,
    },
    /// A computation.
    Compute {
        /// The expert.
        key: ExpertKey,
        /// Where.
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

    /// How much of the shorter lane's work ran beside the other's, over all layers in which the
    /// fast unit and a home unit both had some; `None` when there was no such layer. A layer is
    /// the stretch from its dense part to the next.
    pub fn overlap(&self) -> Option<f64> {
        let (mut beside, mut shorter) = (Nanos::ZERO, Nanos::ZERO);
        let is_dense = |span: &Span| matches!(span.kind, SpanKind::Dense { .. });
        for layer in self.spans.split(is_dense) {
            let lane = |wanted: fn(Unit) -> bool| -> Vec<Span> {
                let of_lane = |span: &&Span| match span.kind {
                    SpanKind::Compute { unit, .. } => wanted(unit),
                    _ => false,
                };
                layer.iter().filter(of_lane).copied().collect()
            };
            let fast = lane(|unit| unit == Unit::Fast);
            let home = lane(|unit| unit != Unit::Fast);
            shorter += busy(&fast).min(busy(&home));
            let common = |a: &Span, b: &Span| a.ends.min(b.ends).since(a.begins.max(b.begins));
            beside += fast.iter().flat_map(|a| home.iter().map(move |b| common(a, b))).sum();
        }
        (shorter > Nanos::ZERO).then(|| beside.as_s() / shorter.as_s())
    }

    /// A JSON document in Chrome's trace format: one row per unit and one for the link.
    pub fn to_chrome_trace(&self, rows: &RowNames<'_>) -> Value {
        let first = [rows.dense, rows.fast, rows.link].into_iter().zip(0..);
        let lanes = self.iter().filter_map(|span| match span.kind {
            SpanKind::Compute { unit: Unit::Home(lane), .. } => Some(lane),
            _ => None,
        });
        let mut events: Vec<Value> = first.map(|(name, row)| row_name(row, name)).collect();
        match lanes.max() {
            Some(0) => events.push(row_name(HOME, rows.home)),
            Some(last) => events.extend(
                (0..=last).map(|lane| row_name(HOME + lane, &format!("{} {lane}", rows.home))),
            ),
            None => {}
        }
        events.extend(self.iter().map(event));
        json!({ "displayTimeUnit": "ms", "traceEvents": events })
    }
}

/// What the rows of a trace are called.
#[derive(Debug, Clone, Copy)]
pub struct RowNames<'a> {
    /// Everything between blocks.
    pub dense: &'a str,
    /// The fast unit.
    pub fast: &'a str,
    /// The link.
    pub link: &'a str,
    /// The home units; several are numbered.
    pub home: &'a str,
}

impl Default for RowNames<'_> {
    fn default() -> Self {
        Self { dense: "dense", fast: "fast unit", link: "link", home: "home unit" }
    }
}

fn busy(spans: &[Span]) -> Nanos {
    spans.iter().map(|span| span.ends.since(span.begins)).sum()
}

/// Row of the first home unit; dense, fast unit and link come before.
const HOME: u16 = 3;

fn row_name(row: u16, name: &str) -> Value {
    json!({ "ph": "M", "name": "thread_name", "pid": 0, "tid": row, "args": { "name": name } })
}

fn event(span: &Span) -> Value {
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
        "ph": "X", "pid": 0, "tid": row, "name": name, "cat": category,
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

    fn dense(layer: u16, at: u64) -> Span {
        Span { kind: SpanKind::Dense { layer }, begins: Nanos(at), ends: Nanos(at + 1) }
    }

    #[test]
    fn overlap_counts_layers_in_which_both_work() {
        let mut spans = Spans::default();
        assert_eq!(spans.overlap(), None);
        let home = Unit::Home(0);
        let first = [dense(0, 0), compute(Unit::Fast, 1, 5), compute(home, 3, 13)];
        // A layer of the fast unit alone says nothing.
        let second = [dense(1, 13), compute(Unit::Fast, 14, 30)];
        first.into_iter().chain(second).for_each(|span| spans.push(span));
        assert_eq!(spans.overlap(), Some(0.5));
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
    }
}
