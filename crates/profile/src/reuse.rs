//! How soon experts come back in decode, as the size of a cache that would still hold them.
//! Mattson's stack distances: one pass gives the hit rate of every size of an LRU cache.

use motley_trace::{ExpertGrid, ExpertKey};
use serde::{Deserialize, Serialize};

/// Buckets of [`Reuse`]; bucket b holds distances in `(b/128, (b+1)/128]` of all experts.
pub const BUCKETS: usize = 128;

/// Choices in decode by stack distance: the least cache, as a part of all experts of the model,
/// that would have held the expert since its last use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reuse {
    /// Choices by bucket, [`BUCKETS`] of them; empty when decode was not observed.
    pub choices: Vec<u64>,
    /// Choices of an expert never used before: no cache can hit those.
    pub first: u64,
}

impl Reuse {
    /// Whether decode was observed at all.
    pub fn is_known(&self) -> bool {
        self.choices.iter().any(|count| *count > 0)
    }

    /// Hit rate of one LRU pool that holds `share` (0 to 1) of all experts, once warm: first
    /// uses are left out. Linear within a bucket. `None` when decode was not observed.
    pub fn hit_rate(&self, share: f64) -> Option<f64> {
        let all: f64 = self.choices.iter().map(|count| *count as f64).sum();
        if all == 0.0 {
            return None;
        }
        let held = share.clamp(0.0, 1.0) * self.choices.len() as f64;
        let part = |bucket: usize| (held - bucket as f64).clamp(0.0, 1.0);
        let hits = self.choices.iter().enumerate().map(|(b, count)| *count as f64 * part(b));
        Some(hits.sum::<f64>() / all)
    }
}

/// Accumulates [`Reuse`]; memory depends on the number of experts only.
#[derive(Clone, Debug)]
pub(crate) struct ReuseBuilder {
    grid: ExpertGrid,
    /// Position on the tape of each expert's last use, from 1; 0 for never.
    last: Vec<u32>,
    /// Fenwick tree over the tape: how many last uses lie at or before a position.
    tree: Vec<u32>,
    now: u32,
    live: u32,
    found: Reuse,
}

impl ReuseBuilder {
    pub(crate) fn new(grid: ExpertGrid) -> Self {
        // Twice the experts: the tape is wound back each time as many uses have passed.
        let tape = 2 * grid.len() + 1;
        Self {
            grid,
            last: vec![0; grid.len()],
            tree: vec![0; tape + 1],
            now: 0,
            live: 0,
            found: Reuse { choices: vec![0; BUCKETS], first: 0 },
        }
    }

    /// Notes a use; `counts` is whether it enters the statistics (decode does).
    pub(crate) fn touch(&mut self, key: ExpertKey, counts: bool) {
        let index = self.grid.index(key);
        if self.now as usize + 2 >= self.tree.len() {
            self.rewind();
        }
        let before = self.last[index];
        if before > 0 {
            // The expert itself and everything used after it must fit.
            let distance = self.live - self.up_to(before) + 1;
            if counts {
                let bucket = self.bucket(distance);
                self.found.choices[bucket] += 1;
            }
            self.add(before, false);
        } else if counts {
            self.found.first += 1;
        }
        self.now += 1;
        self.last[index] = self.now;
        self.add(self.now, true);
    }

    pub(crate) fn finish(self) -> Reuse {
        self.found
    }

    fn bucket(&self, distance: u32) -> usize {
        let experts = self.grid.len().max(1);
        ((distance as usize - 1) * BUCKETS / experts).min(BUCKETS - 1)
    }

    fn add(&mut self, position: u32, one: bool) {
        self.live = if one { self.live + 1 } else { self.live - 1 };
        let mut at = position as usize;
        while at < self.tree.len() {
            self.tree[at] = if one { self.tree[at] + 1 } else { self.tree[at] - 1 };
            at += at & at.wrapping_neg();
        }
    }

    fn up_to(&self, position: u32) -> u32 {
        let (mut at, mut sum) = (position as usize, 0);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    /// Moves all last uses to the beginning of the tape, in their order.
    fn rewind(&mut self) {
        let mut used: Vec<usize> = (0..self.last.len()).filter(|i| self.last[*i] > 0).collect();
        used.sort_by_key(|i| self.last[*i]);
        self.tree.fill(0);
        (self.now, self.live) = (0, 0);
        for index in used {
            self.now += 1;
            self.last[index] = self.now;
            self.add(self.now, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GRID: ExpertGrid = ExpertGrid { layers: 4, experts: 32 };

    fn key(number: u16) -> ExpertKey {
        ExpertKey::new(number / GRID.experts, number % GRID.experts)
    }

    #[test]
    fn a_loop_over_half_the_experts_hits_from_half_on() {
        let mut builder = ReuseBuilder::new(GRID);
        for step in 0..640u16 {
            builder.touch(key(step % 64), true);
        }
        let reuse = builder.finish();
        assert_eq!((reuse.first, reuse.choices[63]), (64, 576));
        assert_eq!(reuse.hit_rate(0.49), Some(0.0));
        assert_eq!(reuse.hit_rate(0.5), Some(1.0));
        assert_eq!(Reuse::default().hit_rate(0.5), None);
    }

    proptest! {
        /// 128 buckets for 128 experts: every size of cache is exact.
        #[test]
        fn distances_are_those_of_a_list_moved_to_front(
            uses in prop::collection::vec(0u16..128, 1..1500),
            held in 1usize..128,
        ) {
            let mut builder = ReuseBuilder::new(GRID);
            let mut list: Vec<u16> = Vec::new();
            let (mut hits, mut again) = (0u32, 0u32);
            for number in uses {
                builder.touch(key(number), true);
                if let Some(at) = list.iter().position(|other| *other == number) {
                    list.remove(at);
                    again += 1;
                    hits += u32::from(at < held);
                }
                list.insert(0, number);
            }
            let rate = builder.finish().hit_rate(held as f64 / 128.0);
            prop_assert_eq!(rate.is_some(), again > 0);
            if let Some(rate) = rate {
                prop_assert!((rate - f64::from(hits) / f64::from(again)).abs() < 1e-9);
            }
        }
    }
}
