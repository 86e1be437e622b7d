//! What ran when, recorded from a drive, and its export in Chrome's trace format
//! (open with `chrome://tracing` or Perfetto). Records; draws nothing.

use motley_cost::Nanos;
use motley_sched::{Purpose, Unit};
use motley_trace::ExpertKey;
use serde_json::{Value, json};

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
    pub(crate) fn push(&mut self, span: Span) {
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
    pub fn to_chrome_trace(&self) -> Value {
        let rows = ["dense", "fast unit", "link"].into_iter().zip(0..);
        let lanes = self.iter().filter_map(|span| match span.kind {
            SpanKind::Compute { unit: Unit::Home(lane), .. } => Some(lane),
            _ => None,
        });
        let mut events: Vec<Value> = rows.map(|(name, row)| row_name(row, name)).collect();
        if let Some(last) = lanes.max() {
            let home = (0..=last).map(|lane| row_name(HOME + lane, &format!("home unit {lane}")));
            events.extend(home);
        }
        events.extend(self.iter().map(event));
        json!({ "displayTimeUnit": "ms", "traceEvents": events })
    }
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
