//! No guesses: the baseline, and right whenever the link has no idle time.

use super::{Candidate, PrefetchView, Prefetcher};

/// Names nothing.
#[derive(Debug, Default)]
pub struct NoPrefetch;

impl Prefetcher for NoPrefetch {
    fn name(&self) -> &'static str {
        "none"
    }

    fn candidates(&mut self, _view: &PrefetchView<'_>, _out: &mut Vec<Candidate>) {}
}
