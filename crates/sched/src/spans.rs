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
    Load { tier: u16, key: ExpertKey, purpose: Purpose },
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

    /// Tiers that are met; at least one.
    pub fn tiers(&self) -> u16 {
        let tier = |span: &Span| match Row::of(span.kind) {
            Row::Tier(tier) | Row::Link(tier) => Some(tier + 1),
            Row::Dense | Row::Home(_) => None,
        };
        self.iter().filter_map(tier).max().unwrap_or(1)
    }

    /// Home lanes that are met.
    pub fn lanes(&self) -> u16 {
        let lane = |span: &Span| match Row::of(span.kind) {
            Row::Home(lane) => Some(lane + 1),
            _ => None,
        };
        self.iter().filter_map(lane).max().unwrap_or(0)
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
        let tiers = spans.tiers();
        events.extend(spans.iter().map(|span| event(span, process, tiers)));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

fn row_names(spans: &Spans, rows: &RowNames<'_>, process: usize) -> Vec<Value> {
    let names = rows.all(spans).into_iter().zip(0..);
    names.map(|(name, row)| row_name(process, row, &name)).collect()
}

/// A line of a picture of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    Dense,
    /// The unit of a tier.
    Tier(u16),
    /// The link to a tier.
    Link(u16),
    /// A home lane.
    Home(u16),
}

impl Row {
    /// Of a span.
    pub fn of(kind: SpanKind) -> Self {
        match kind {
            SpanKind::Dense { .. } => Self::Dense,
            SpanKind::Load { tier, .. } => Self::Link(tier),
            SpanKind::Compute { unit: Unit::Tier(tier), .. } => Self::Tier(tier),
            SpanKind::Compute { unit: Unit::Home(lane), .. } => Self::Home(lane),
        }
    }

    /// From the top: dense work, every tier's unit and link, home lanes.
    pub fn number(self, tiers: u16) -> u16 {
        match self {
            Self::Dense => 0,
            Self::Tier(tier) => 1 + 2 * tier,
            Self::Link(tier) => 2 + 2 * tier,
            Self::Home(lane) => 1 + 2 * tiers + lane,
        }
    }
}

/// What the rows of a trace are called.
#[derive(Debug, Clone, Copy)]
pub struct RowNames<'a> {
    /// Everything between blocks.
    pub dense: &'a str,
    /// The unit of the first tier and the link to it, where they are not like the others'.
    pub first: Option<(&'a str, &'a str)>,
    /// Units of tiers; several are numbered.
    pub fast: &'a str,
    /// Links to tiers; several are numbered.
    pub link: &'a str,
    /// The home units; several are numbered.
    pub home: &'a str,
}

impl Default for RowNames<'_> {
    fn default() -> Self {
        let (fast, link, home) = ("fast unit", "link", "home unit");
        Self { dense: "dense", first: None, fast, link, home }
    }
}

impl RowNames<'_> {
    /// Of all rows there are, from the top.
    pub fn all(&self, spans: &Spans) -> Vec<String> {
        let of_tiers = (0..spans.tiers()).flat_map(|tier| [Row::Tier(tier), Row::Link(tier)]);
        let homes = (0..spans.lanes()).map(Row::Home);
        let rows = std::iter::once(Row::Dense).chain(of_tiers).chain(homes);
        rows.map(|row| self.name(row, spans)).collect()
    }

    /// What a row is called; several of a kind are numbered.
    fn name(&self, row: Row, spans: &Spans) -> String {
        let numbered = |name: &str, number: u16, of: u16| match of {
            0 | 1 => name.to_owned(),
            _ => format!("{name} {number}"),
        };
        let others = u16::from(self.first.is_some()).min(spans.tiers());
        match row {
            Row::Dense => self.dense.to_owned(),
            Row::Tier(0) if self.first.is_some() => self.first.unwrap_or_default().0.to_owned(),
            Row::Link(0) if self.first.is_some() => self.first.unwrap_or_default().1.to_owned(),
            Row::Tier(tier) => numbered(self.fast, tier - others, spans.tiers() - others),
            Row::Link(tier) => numbered(self.link, tier - others, spans.tiers() - others),
            Row::Home(lane) => numbered(self.home, lane, spans.lanes()),
        }
    }
}

fn row_name(process: usize, row: u16, name: &str) -> Value {
    json!({ "ph": "M", "name": "thread_name", "pid": process, "tid": row, "args": { "name": name } })
}

fn event(span: &Span, process: usize, tiers: u16) -> Value {
    let (name, category) = match span.kind {
        SpanKind::Dense { layer } => (format!("layer {layer}"), "dense"),
        SpanKind::Load { key, purpose: Purpose::Demand, .. } => (key.to_string(), "demand"),
        SpanKind::Load { key, purpose: Purpose::Guess, .. } => (key.to_string(), "guess"),
        SpanKind::Compute { key, tokens, .. } => (format!("{key} x{tokens}"), "compute"),
    };
    let row = Row::of(span.kind).number(tiers);
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
