//! Least recently used: the expert whose last visit is longest ago leaves first.
//! Below one token's working set a global pool under LRU hits exactly nothing.

use motley_trace::ExpertKey;

use super::{CachePolicy, Rank, Ranks, Routed};

/// Ranks by a counter of touches. O(log n) per touch, no state per expert.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    touches: u64,
}

impl Lru {
    /// A policy that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn touch(&mut self, key: ExpertKey, ranks: &mut Ranks) {
        self.touches += 1;
        ranks.set(key, Rank::from_u64(self.touches));
    }
}

impl CachePolicy for Lru {
    fn name(&self) -> &'static str {
        "lru"
    }

    fn on_visit(&mut self, routed: &Routed<'_>, ranks: &mut Ranks) {
        for key in routed.keys() {
            self.touch(key, ranks);
        }
    }

    fn on_admit(&mut self, key: ExpertKey, ranks: &mut Ranks) {
        self.touch(key, ranks);
    }
}
