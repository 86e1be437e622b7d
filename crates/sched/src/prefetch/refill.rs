//! After a miss that was computed at home, bring the expert into the cache when the link is idle
//! and the cache's policy ranks it above the one it would replace. Not a guess about the future
//! of its own: the policy's ranks are.
//!
//! This is how a score-aware cache (H3) follows the routing when misses are not loaded on demand.

use motley_trace::ExpertKey;

use super::{Candidate, PrefetchView, Prefetcher};
use crate::work::{LayerWork, Whereabouts};

/// Adds the current layer's absent experts, heaviest load first, after another prefetcher's.
pub struct Refill {
    inner: Box<dyn Prefetcher>,
    /// Experts of the layer: tokens, number, and where they were.
    routed: Vec<(u32, u16, Whereabouts)>,
}

impl Refill {
    /// After the candidates of `inner`.
    pub fn after(inner: Box<dyn Prefetcher>) -> Self {
        Self { inner, routed: Vec::new() }
    }
}

impl Prefetcher for Refill {
    fn name(&self) -> &'static str {
        "refill"
    }

    fn on_routed(&mut self, work: &LayerWork<'_>) {
        self.inner.on_routed(work);
        self.routed.clear();
        self.routed.extend(work.items.iter().map(|item| (item.tokens, item.expert, item.at)));
        self.routed
            .sort_unstable_by_key(|&(tokens, expert, _)| (std::cmp::Reverse(tokens), expert));
    }

    fn candidates(&mut self, view: &PrefetchView<'_>, out: &mut Vec<Candidate>) {
        self.inner.candidates(view, out);
        let missed = self.routed.iter().filter(|(_, _, at)| !at.is_near(view.tier));
        let keys = missed.map(|&(_, expert, _)| ExpertKey::new(view.layer, expert));
        out.extend(keys.map(Candidate::Refill));
    }
}
