//! Least frequently used: the expert chosen in the fewest visits leaves first.
//! Counts survive eviction ("perfect" LFU); among equals the least recent leaves.

use motley_trace::{ExpertGrid, ExpertKey};

use super::{CachePolicy, Rank, Ranks, Routed};

/// Low bits of the rank that hold the time of the last touch, above them the count.
const TOUCH_BITS: u32 = 40;
/// Largest count: it must leave room for the touch.
const MAX_COUNT: u64 = (1 << (64 - TOUCH_BITS)) - 1;

/// Ranks by number of visits. O(log n) per touch, one counter per expert. Counts never age, so
/// what was popular long ago stays; see `lfru` for the cure.
#[derive(Clone, Debug)]
pub struct Lfu {
    grid: ExpertGrid,
    counts: Vec<u64>,
    touches: u64,
}

impl Lfu {
    /// A policy that has seen nothing.
    pub fn new(grid: ExpertGrid) -> Self {
        Self { grid, counts: vec![0; grid.len()], touches: 0 }
    }

    fn rank(&mut self, key: ExpertKey, ranks: &mut Ranks) {
        self.touches += 1;
        let count = self.counts[self.grid.index(key)].min(MAX_COUNT);
        let touch = self.touches & ((1 << TOUCH_BITS) - 1);
        ranks.set(key, Rank::from_u64(count << TOUCH_BITS | touch));
    }
}

impl CachePolicy for Lfu {
    fn name(&self) -> &'static str {
        "lfu"
    }

    fn on_visit(&mut self, routed: &Routed<'_>, ranks: &mut Ranks) {
        for key in routed.keys() {
            self.counts[self.grid.index(key)] += 1;
            self.rank(key, ranks);
        }
    }
}
