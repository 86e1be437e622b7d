//! After a miss that was computed at home, bring the expert into the cache when the link is idle
//! and the cache's policy ranks it above the one it would replace. Not a guess about the future
//! of its own: the policy's ranks are.
//!
//! This is how a score-aware cache (H3) follows the routing when misses are not loaded on demand.

use motley_trace::ExpertKey;

use super::{Candidate, PrefetchView, Prefetcher};
use crate::work::LayerWork;

/// Adds the current layer's absent experts, heaviest load first, after another prefetcher's.
pub struct Refill {
    inner: Box<dyn Prefetcher>,
    missed: Vec<(u32, u16)>,
}

impl Refill {
    /// After the candidates of `inner`.
    pub fn after(inner: Box<dyn Prefetcher>) -> Self {
        Self { inner, missed: Vec::new() }
    }
}

impl Prefetcher for Refill {
    fn name(&self) -> &'static str {
        "refill"
    }

    fn on_routed(&mut self, work: &LayerWork<'_>) {
        self.inner.on_routed(work);
        self.missed.clear();
        let absent = work.items.iter().filter(|item| !item.is_near());
        self.missed.extend(absent.map(|item| (item.tokens, item.expert)));
        self.missed.sort_unstable_by_key(|&(tokens, expert)| (std::cmp::Reverse(tokens), expert));
    }

    fn candidates(&mut self, view: &PrefetchView<'_>, out: &mut Vec<Candidate>) {
        self.inner.candidates(view, out);
        let keys = self.missed.iter().map(|&(_, expert)| ExpertKey::new(view.layer, expert));
        out.extend(keys.map(Candidate::Refill));
    }
}
