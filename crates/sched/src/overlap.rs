//! How much of a drive the fast unit and the home units worked side by side, from what ran when.
//! Two questions, because a plan may rightly leave a lane idle:
//!
//! ```text
//!   fast   ████████░░░░░░░████     ░ waits for bytes on the link
//!   home   ██████████████████
//!          └─ both had work ─┘     here both should run, or the driver holds one back
//! ```
//!
//! * of the shorter lane's work, how much ran beside the other's: what the plan and its execution
//!   reached together;
//! * of the time in which both lanes had an expert they could compute, how much both computed:
//!   what the execution alone is answerable for.
//!
//! A home unit has work from the layer's beginning to its last expert; the fast unit has work while
//! an expert that is there has not been computed.

use motley_cost::Nanos;
use motley_trace::ExpertKey;

use crate::spans::{Span, SpanKind, Spans};
use crate::work::Unit;

/// Sums over the layers in which both lanes had something to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overlap {
    /// Time in which both lanes computed.
    pub beside: Nanos,
    /// Work of the lane that had less, layer by layer.
    pub shorter: Nanos,
    /// Time in which both lanes had an expert they could compute.
    pub both_had_work: Nanos,
}

impl Overlap {
    /// Of the recorded drive; `None` when no layer had work for both lanes.
    pub fn of(spans: &Spans) -> Option<Self> {
        let all: Vec<Span> = spans.iter().copied().collect();
        let mut sum = Self::default();
        let mut begins = Nanos::ZERO;
        for part in all.chunk_by(|_, next| !matches!(next.kind, SpanKind::Dense { .. })) {
            if let Some(Span { kind: SpanKind::Dense { .. }, ends, .. }) = part.first() {
                begins = *ends;
            }
            sum.add(&Layer::of(part, begins));
        }
        (sum.shorter > Nanos::ZERO).then_some(sum)
    }

    /// Part of the shorter lane's work that ran beside the other's.
    pub fn of_shorter(&self) -> f64 {
        self.beside.as_s() / self.shorter.as_s()
    }

    /// Part of the time in which both had work that both computed.
    pub fn while_both_had_work(&self) -> f64 {
        self.beside.as_s() / self.both_had_work.as_s().max(f64::MIN_POSITIVE)
    }

    fn add(&mut self, layer: &Layer) {
        let Layer { fast, home, fast_can, home_can } = layer;
        if fast.is_empty() || home.is_empty() {
            return;
        }
        self.beside += common(fast, home);
        self.shorter += length(fast).min(length(home));
        self.both_had_work += common(fast_can, home_can);
    }
}

/// Stretches of one layer, sorted and apart from each other.
struct Layer {
    fast: Vec<Stretch>,
    home: Vec<Stretch>,
    /// When the lanes had something they could compute.
    fast_can: Vec<Stretch>,
    home_can: Vec<Stretch>,
}

type Stretch = (Nanos, Nanos);

impl Layer {
    /// `begins` is when the layer was routed.
    fn of(spans: &[Span], begins: Nanos) -> Self {
        let computed = |wanted: fn(Unit) -> bool| {
            spans.iter().filter_map(move |span| match span.kind {
                SpanKind::Compute { key, unit, .. } if wanted(unit) => {
                    Some((key, (span.begins, span.ends)))
                }
                _ => None,
            })
        };
        let here = |key: ExpertKey| {
            let arrived = spans.iter().find_map(|span| match span.kind {
                SpanKind::Load { key: loaded, .. } if loaded == key => Some(span.ends),
                _ => None,
            });
            arrived.unwrap_or(begins).max(begins)
        };
        let fast: fn(Unit) -> bool = |unit| unit == Unit::Tier(0);
        let home: fn(Unit) -> bool = |unit| unit != Unit::Tier(0);
        let waited = |(key, (from, to)): (ExpertKey, Stretch)| (here(key).min(from), to);
        Self {
            fast: union(computed(fast).map(|(_, ran)| ran).collect()),
            home: union(computed(home).map(|(_, ran)| ran).collect()),
            fast_can: union(computed(fast).map(waited).collect()),
            home_can: union(computed(home).map(|(_, (_, to))| (begins, to)).collect()),
        }
    }
}

/// The same time as stretches that do not meet.
fn union(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_unstable();
    let mut apart: Vec<Stretch> = Vec::with_capacity(stretches.len());
    for (from, to) in stretches {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

fn length(apart: &[Stretch]) -> Nanos {
    apart.iter().map(|(from, to)| to.since(*from)).sum()
}

fn common(a: &[Stretch], b: &[Stretch]) -> Nanos {
    let both = |a: &Stretch, b: &Stretch| a.1.min(b.1).since(a.0.max(b.0));
    a.iter().flat_map(|a| b.iter().map(move |b| both(a, b))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Purpose;

    const HOME: Unit = Unit::Home(0);

    fn compute(expert: u16, unit: Unit, begins: u64, ends: u64) -> Span {
        let kind = SpanKind::Compute { key: ExpertKey::new(0, expert), unit, tokens: 1 };
        Span { kind, begins: Nanos(begins), ends: Nanos(ends) }
    }

    fn load(expert: u16, begins: u64, ends: u64) -> Span {
        let (key, purpose) = (ExpertKey::new(0, expert), Purpose::Demand);
        Span {
            kind: SpanKind::Load { tier: 0, key, purpose },
            begins: Nanos(begins),
            ends: Nanos(ends),
        }
    }

    fn dense(layer: u16, begins: u64, ends: u64) -> Span {
        Span { kind: SpanKind::Dense { layer }, begins: Nanos(begins), ends: Nanos(ends) }
    }

    fn overlap(spans: &[Span]) -> Option<Overlap> {
        let mut all = Spans::default();
        spans.iter().for_each(|span| all.push(*span));
        Overlap::of(&all)
    }

    #[test]
    fn only_layers_in_which_both_work_count() {
        assert_eq!(overlap(&[]), None);
        let found = overlap(&[
            dense(0, 0, 1),
            compute(0, Unit::Tier(0), 1, 5),
            compute(1, HOME, 3, 13),
            dense(1, 13, 14),
            compute(0, Unit::Tier(0), 14, 30),
        ]);
        let expected = Overlap { beside: Nanos(2), shorter: Nanos(4), both_had_work: Nanos(4) };
        assert_eq!(found, Some(expected));
        assert_eq!(expected.of_shorter(), 0.5);
    }

    #[test]
    fn waiting_for_the_link_is_not_held_against_the_driver() {
        // The fast unit computes 1..3, waits for bytes until 9, computes 9..12; home 1..10.
        let found = overlap(&[
            dense(0, 0, 1),
            compute(0, Unit::Tier(0), 1, 3),
            compute(2, HOME, 1, 10),
            load(1, 1, 9),
            compute(1, Unit::Tier(0), 9, 12),
        ])
        .expect("both work");
        assert_eq!(
            (found.beside, found.shorter, found.both_had_work),
            (Nanos(3), Nanos(5), Nanos(3))
        );
        assert_eq!(found.while_both_had_work(), 1.0);
    }

    #[test]
    fn bytes_that_are_there_and_not_computed_are() {
        // There from 4 on, computed only when the home unit is done.
        let found = overlap(&[
            dense(0, 0, 1),
            load(1, 1, 4),
            compute(2, HOME, 1, 10),
            compute(1, Unit::Tier(0), 10, 13),
        ])
        .expect("both work");
        assert_eq!((found.beside, found.both_had_work), (Nanos::ZERO, Nanos(6)));
    }
}
