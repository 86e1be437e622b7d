//! G4: count activations while the prompt is read, then bring the most used expert of every
//! layer, the second most used of every layer, and so on until the fast tier is full. A tier that
//! is full when decode begins has them in place of what its policy ranks lower. Where experts come
//! from a disk, a device has what memory holds; the rest is left to the disk.

use motley_trace::{ExpertGrid, ExpertKey};

use super::{Candidate, PrefetchView, Prefetcher};
use crate::cache::Routed;
use crate::work::{LayerWork, Phase};

/// Candidates named after one layer.
const AT_ONCE: usize = 8;

/// Counts in prefill; its candidates begin with decode.
#[derive(Debug)]
pub struct PrefillCounted {
    grid: ExpertGrid,
    counts: Vec<u64>,
    /// Candidates in order, made when decode begins.
    order: Vec<ExpertKey>,
    /// The last phase seen.
    phase: Phase,
}

impl PrefillCounted {
    /// With all counts zero.
    pub fn new(grid: ExpertGrid) -> Self {
        let counts = vec![0; grid.len()];
        Self { grid, counts, order: Vec::new(), phase: Phase::Prefill }
    }

    /// Counts one routed layer.
    pub fn count(&mut self, routed: &Routed<'_>) {
        for (index, key) in routed.keys().enumerate() {
            self.counts[self.grid.index(key)] += u64::from(routed.load(index));
        }
    }

    /// Rank by rank over all layers: `x` grown from 1. Experts never counted are left out.
    pub fn order(&self) -> Vec<ExpertKey> {
        let mut ranked: Vec<(usize, ExpertKey)> = Vec::new();
        for layer in 0..self.grid.layers {
            let count = |expert| self.counts[self.grid.index(ExpertKey::new(layer, expert))];
            let mut experts: Vec<u16> =
                (0..self.grid.experts).filter(|&expert| count(expert) > 0).collect();
            experts.sort_by_key(|&expert| (std::cmp::Reverse(count(expert)), expert));
            let keys = experts.into_iter().map(|expert| ExpertKey::new(layer, expert));
            ranked.extend(keys.enumerate());
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, key)| key).collect()
    }
}

impl Prefetcher for PrefillCounted {
    fn name(&self) -> &'static str {
        "prefill-counted"
    }

    fn on_routed(&mut self, work: &LayerWork<'_>) {
        if work.phase == Phase::Prefill {
            if self.phase == Phase::Decode {
                self.counts.fill(0);
            }
            for item in work.items {
                let key = ExpertKey::new(work.layer, item.expert);
                self.counts[self.grid.index(key)] += u64::from(item.tokens);
            }
        } else if self.phase == Phase::Prefill {
            self.order = self.order();
            self.order.reverse();
        }
        self.phase = work.phase;
    }

    fn candidates(&mut self, view: &PrefetchView<'_>, out: &mut Vec<Candidate>) {
        let is_past = |key| (view.is_near)(key) || !(view.can_come)(key);
        while self.order.last().is_some_and(|&key| is_past(key)) {
            self.order.pop();
        }
        out.extend(self.order.iter().rev().take(AT_ONCE).copied().map(Candidate::Refill));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_used_of_every_layer_comes_before_any_second() {
        let mut counted = PrefillCounted::new(ExpertGrid { layers: 2, experts: 3 });
        counted.counts = vec![5, 9, 0, 100, 0, 50];
        let expected = [(0, 1), (1, 0), (0, 0), (1, 2)].map(|(l, e)| ExpertKey::new(l, e));
        assert_eq!(counted.order(), expected);
    }
}
