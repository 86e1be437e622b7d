//! H2: for every expert the coming layers are predicted to need, run the timelines (H1) with it
//! fetched and without; fetch by the largest saving. An expert that cannot be there when its layer
//! is routed counts as arriving that much later: where its home unit is done sooner, it saves
//! nothing and is not fetched.
//!
//! Cost: experts of equal load on one lane save equally much, so H1 runs once per distinct load:
//! twice per layer in decode. At most [`MAX_CANDIDATES`] are tried per layer. Where a layer has
//! more than [`LARGE_LAYER`] active experts fewer are tried, and of the next layer only.

use motley_cost::Nanos;
use motley_trace::ExpertKey;

use super::{Candidate, Prediction, PrefetchView, Prefetcher};
use crate::timeline::Timelines;
use crate::work::{LayerWork, Phase, Whereabouts, WorkItem};

/// Candidates tried per predicted layer, highest predicted load first.
pub const MAX_CANDIDATES: usize = 8;
/// The same in a layer of more than [`LARGE_LAYER`] active experts.
pub const MAX_CANDIDATES_LARGE: usize = 2;
/// Most layers ahead that are looked at; the source looks three ahead.
pub const MAX_LAYERS: usize = 3;

/// Up to so many tiers are all looked at in each layer. Of more, one is, in turn, and for one
/// coming layer: many devices must not cost many times as much.
pub const MAX_TIERS_AT_ONCE: usize = 2;

/// Active experts from which a layer counts as large: prefill of a chunk.
pub const LARGE_LAYER: usize = 32;

/// Ranks predicted experts by what they would save.
#[derive(Debug)]
pub struct NextLayer {
    /// Names nothing in prefill, where a chunk needs most experts anyway.
    decode_only: bool,
    /// How many layers ahead are looked at.
    layers: usize,
    timelines: Timelines,
    items: Vec<WorkItem>,
    absent: Vec<usize>,
    gains: Vec<(u64, ExpertKey)>,
}

impl Default for NextLayer {
    fn default() -> Self {
        Self {
            decode_only: false,
            layers: MAX_LAYERS,
            timelines: Timelines::default(),
            items: Vec::new(),
            absent: Vec::new(),
            gains: Vec::new(),
        }
    }
}

impl NextLayer {
    /// One that names nothing in prefill, and else of so many layers.
    pub fn decode_only(layers: usize) -> Self {
        Self { decode_only: true, layers, ..Self::default() }
    }

    fn score(&mut self, view: &PrefetchView<'_>, prediction: &Prediction, at: &[Whereabouts]) {
        self.items.clear();
        self.items.extend(prediction.loads.iter().zip(at).map(|(&(expert, tokens), at)| {
            // What is on its way will be there.
            WorkItem { expert, tokens: tokens.max(1), at: at.arrived() }
        }));
        self.absent.clear();
        let not_above = !view.costs.tiers_above(view.tier);
        let parent = view.costs.parent(view.tier);
        let is_absent = |&i: &usize| {
            let at = self.items[i].at;
            !at.is_near_any(not_above) && parent.is_none_or(|parent| at.is_near(parent))
        };
        self.absent.extend((0..self.items.len()).filter(is_absent));
        if self.absent.is_empty() {
            return;
        }
        let order = |&i: &usize| {
            let WorkItem { expert, tokens, .. } = self.items[i];
            (std::cmp::Reverse(tokens), view.costs.lane_of(expert), i)
        };
        self.absent.sort_unstable_by_key(order);
        let large = self.items.len() > LARGE_LAYER;
        self.absent.truncate(if large { MAX_CANDIDATES_LARGE } else { MAX_CANDIDATES });
        let fetched = |at: Whereabouts| match (view.late_by)(prediction.layer) {
            Nanos::ZERO => at.and_in(view.tier),
            late => at.and_coming(view.tier, late),
        };
        let without = self.makespan(view, prediction.layer);
        let mut known: Option<((u32, u16), u64)> = None;
        for at in 0..self.absent.len() {
            let i = self.absent[at];
            let WorkItem { expert, tokens, .. } = self.items[i];
            let like = (tokens, view.costs.lane_of(expert));
            let gain = match known {
                Some((same, gain)) if same == like => gain,
                _ => {
                    let before = self.items[i].at;
                    self.items[i].at = fetched(before);
                    let with = self.makespan(view, prediction.layer);
                    self.items[i].at = before;
                    without.since(with).0
                }
            };
            known = Some((like, gain));
            self.gains.push((gain, ExpertKey::new(prediction.layer, expert)));
        }
    }

    fn makespan(&mut self, view: &PrefetchView<'_>, layer: u16) -> Nanos {
        self.timelines.makespan(&LayerWork {
            layer,
            phase: view.phase,
            tokens: 1,
            items: &self.items,
            costs: view.costs,
            links_free_in: &[],
        })
    }
}

impl Prefetcher for NextLayer {
    fn name(&self) -> &'static str {
        "next-layer"
    }

    fn candidates(&mut self, view: &PrefetchView<'_>, out: &mut Vec<Candidate>) {
        if self.decode_only && view.phase == Phase::Prefill || !is_in_turn(view) {
            return;
        }
        self.gains.clear();
        let is_large = |prediction: &Prediction| prediction.loads.len() > LARGE_LAYER;
        let layers = if view.predictions.iter().any(is_large) { 1 } else { self.layers };
        let one = (view.costs.tiers.len() > MAX_TIERS_AT_ONCE).then(|| first_in_time(view, layers));
        let mut at = view.at;
        for (i, prediction) in view.predictions.iter().take(layers).enumerate() {
            let (own, others) = at.split_at(prediction.loads.len());
            if one.is_none_or(|one| one == i) {
                self.score(view, prediction, own);
            }
            at = others;
        }
        self.gains.retain(|(gain, _)| *gain > 0);
        // Among equals the nearer layer first, since its prediction is the better one, and in a
        // layer the surer expert, as they were predicted.
        self.gains.sort_by_key(|&(gain, key)| (std::cmp::Reverse(gain), key.layer));
        out.extend(self.gains.iter().map(|(_, key)| Candidate::Guess(*key)));
    }
}

/// The nearest of `layers` predictions whose layer a copy begun now is in time for, else the
/// furthest.
fn first_in_time(view: &PrefetchView<'_>, layers: usize) -> usize {
    let mut predictions = view.predictions.iter().take(layers);
    let last = predictions.len().saturating_sub(1);
    let in_time = |prediction: &Prediction| (view.late_by)(prediction.layer) == Nanos::ZERO;
    predictions.position(in_time).unwrap_or(last)
}

/// Whether a tier is looked at in this layer.
fn is_in_turn(view: &PrefetchView<'_>) -> bool {
    let tiers = view.costs.tiers.len() as u16;
    usize::from(tiers) <= MAX_TIERS_AT_ONCE || view.layer % tiers == view.tier
}

#[cfg(test)]
mod tests {
    use motley_cost::{ComputeCost, TransferCost};

    use super::*;
    use crate::work::{Costs, Homes, Layout};

    #[test]
    fn the_expert_that_saves_most_comes_first_and_useless_ones_do_not_come() {
        let costs = Costs::one_tier(
            ComputeCost::constant(1.0),
            TransferCost { latency_us: 100.0, per_byte_us: 0.0 },
            Some(Homes {
                units: 1,
                layout: Layout::Whole,
                unit: ComputeCost { launch_us: 0.0, per_token_us: 2.0, floor_us: 0.0 },
                entry_us: 0.0,
                entry_per_token_us: 0.0,
            }),
            1,
        );
        let predictions = [
            Prediction { layer: 1, loads: vec![(0, 1), (1, 3)] },
            Prediction { layer: 2, loads: vec![(5, 9)] },
        ];
        let view = PrefetchView {
            layer: 0,
            layers: 4,
            tier: 0,
            phase: Phase::Decode,
            predictions: &predictions,
            costs: &costs,
            at: &[Whereabouts::default(); 3],
            is_near: &|_| false,
            can_come: &|_| true,
            late_by: &|_| Nanos::ZERO,
        };
        let mut out = Vec::new();
        NextLayer::default().candidates(&view, &mut out);
        // Savings: 18 - 1 for (2, 5); 8 - 2 for (1, 1); 8 - 6 for (1, 0).
        let expected =
            [(2, 5), (1, 1), (1, 0)].map(|(l, e)| Candidate::Guess(ExpertKey::new(l, e)));
        assert_eq!(out, expected);
        // What would come after the home unit is done is left where it is.
        let late =
            PrefetchView { late_by: &|layer| Nanos::from_us(9.0 * f64::from(2 - layer)), ..view };
        out.clear();
        NextLayer::default().candidates(&late, &mut out);
        assert_eq!(out, expected[..1]);
    }
}
