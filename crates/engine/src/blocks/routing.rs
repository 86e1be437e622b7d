//! Watching the router: which experts each token was sent to. For traces, profiles
//! and tests; costs nothing when nobody watches.

use motley_ggml::ExpertBlock;
use motley_sched::Phase;

/// The routing of one layer over one micro-batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoutedBlock {
    pub layer: u32,
    /// Of the batch it belongs to.
    pub phase: Phase,
    /// Experts per token (k).
    pub slots: usize,
    /// Expert ids, token-major: `[tokens][slots]`.
    pub experts: Vec<u32>,
}

impl RoutedBlock {
    /// Ids of one token, best first.
    pub fn token(&self, token: usize) -> &[u32] {
        &self.experts[token * self.slots..][..self.slots]
    }

    /// Tokens in the micro-batch.
    pub fn tokens(&self) -> usize {
        self.experts.len().checked_div(self.slots).unwrap_or(0)
    }

    pub(crate) fn refill(&mut self, phase: Phase, block: &ExpertBlock<'_>) {
        self.phase = phase;
        self.layer = block.layer();
        self.slots = block.slots();
        self.experts.clear();
        for token in 0..block.tokens() {
            self.experts.extend((0..self.slots).map(|slot| block.expert(token, slot)));
        }
    }
}

/// Called with every routing decision, before the experts run.
pub trait RoutingWatcher: Send {
    /// `routed` is reused after the call: copy what is to be kept.
    fn on_routed(&mut self, routed: &RoutedBlock);
}
