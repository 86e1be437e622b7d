//! Double buffering of a prompt: while a layer that needed nearly all its experts is computed,
//! the next one's come over the link, in the order of the file. A prompt long enough for that
//! needs nearly all of the next layer as well (W7), so these guesses are seldom wrong. Decoded
//! tokens are another prefetcher's affair.

use motley_trace::{ExpertGrid, ExpertKey};

use super::{Candidate, PrefetchView, Prefetcher};
use crate::selective::{LoadMode, load_mode};
use crate::work::{LayerWork, Phase};

/// In prefill the whole next layer, in decode what another prefetcher names.
pub struct WholeLayer {
    grid: ExpertGrid,
    decode: Box<dyn Prefetcher>,
    /// Whether the current layer needed nearly everything and had its absent experts moved.
    streams: bool,
}

impl WholeLayer {
    /// With `decode` for decoded tokens.
    pub fn before(grid: ExpertGrid, decode: Box<dyn Prefetcher>) -> Self {
        Self { grid, decode, streams: false }
    }
}

impl Prefetcher for WholeLayer {
    fn name(&self) -> &'static str {
        "whole-layer"
    }

    fn on_routed(&mut self, work: &LayerWork<'_>) {
        self.decode.on_routed(work);
        let needed = load_mode(work.items.len(), self.grid.experts.into());
        self.streams = work.phase == Phase::Prefill && needed == LoadMode::All;
    }

    fn candidates(&mut self, view: &PrefetchView<'_>, out: &mut Vec<Candidate>) {
        if view.phase == Phase::Decode {
            return self.decode.candidates(view, out);
        }
        let next = view.layer + 1;
        if !self.streams || next >= view.layers {
            return;
        }
        let keys = (0..self.grid.experts).map(|expert| ExpertKey::new(next, expert));
        out.extend(keys.filter(|&key| !(view.is_near)(key)).map(Candidate::Guess));
    }
}

#[cfg(test)]
mod tests {
    use motley_cost::{ComputeCost, Nanos, TransferCost};

    use super::super::NoPrefetch;
    use super::*;
    use crate::work::{Costs, Whereabouts, WorkItem};

    fn costs() -> Costs {
        let link = TransferCost { latency_us: 1.0, per_byte_us: 0.0 };
        Costs::one_tier(ComputeCost::constant(1.0), link, None, 1)
    }

    fn named(phase: Phase, needed: u16, layer: u16) -> Vec<ExpertKey> {
        let mut prefetcher =
            WholeLayer::before(ExpertGrid { layers: 3, experts: 10 }, Box::new(NoPrefetch));
        let costs = costs();
        let item = |expert| WorkItem { expert, tokens: 9, at: Whereabouts::default() };
        let items: Vec<_> = (0..needed).map(item).collect();
        prefetcher.on_routed(&LayerWork {
            layer,
            phase,
            tokens: 90,
            items: &items,
            costs: &costs,
            links_free_in: &[],
        });
        let view = PrefetchView {
            tier: 0,
            layer,
            layers: 3,
            phase,
            predictions: &[],
            costs: &costs,
            at: &[],
            is_near: &|key| key.expert == 4,
            can_come: &|_| true,
            late_by: &|_| Nanos::ZERO,
        };
        let mut out = Vec::new();
        prefetcher.candidates(&view, &mut out);
        out.into_iter().map(Candidate::key).collect()
    }

    #[test]
    fn a_layer_that_needed_all_brings_the_next_one() {
        let next = named(Phase::Prefill, 9, 0);
        let expected = (0..10).filter(|&e| e != 4).map(|e| ExpertKey::new(1, e));
        assert_eq!(next, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_layer_that_needed_few_the_last_one_and_decoding_bring_none() {
        assert_eq!(named(Phase::Prefill, 5, 0), []);
        assert_eq!(named(Phase::Prefill, 10, 2), []);
        assert_eq!(named(Phase::Decode, 10, 0), []);
    }
}
