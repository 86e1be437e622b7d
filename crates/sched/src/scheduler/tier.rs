//! One tier as the scheduler keeps it: where its experts are, its link's idle time, and guesses.

use motley_cost::Nanos;

use super::action::SchedulerLimits;
use super::idle::IdleLink;
use super::places::Places;
use crate::cache::ExpertCache;
use crate::prefetch::{Candidate, NoPrefetch, Prefetcher};

/// What a tier is made of.
pub struct TierParts {
    /// Slots, leases and the replacement policy.
    pub cache: ExpertCache,
    /// What to fetch early.
    pub prefetcher: Box<dyn Prefetcher>,
    pub limits: SchedulerLimits,
}

pub(super) struct TierState {
    pub(super) places: Places,
    pub(super) limits: SchedulerLimits,
    pub(super) prefetcher: Box<dyn Prefetcher>,
    pub(super) idle: IdleLink,
    /// The best last.
    pub(super) guesses: Vec<Candidate>,
    /// Whether the prefetcher has not been asked since the last routed layer.
    pub(super) guesses_are_due: bool,
}

impl TierState {
    /// # Panics
    /// When the limits leave no staging buffer for demand or no transfer at all.
    pub(super) fn new(tier: u16, parts: TierParts, one_load: Nanos) -> Self {
        let TierParts { cache, prefetcher, limits } = parts;
        assert!(limits.staging_slots > limits.prefetch_slots, "no staging buffer for demand");
        assert!(limits.loads_in_flight > 0 && limits.load_attempts > 0, "no transfers");
        Self {
            places: Places::new(tier, cache, limits),
            limits,
            prefetcher,
            idle: IdleLink::new(one_load),
            guesses: Vec::new(),
            guesses_are_due: false,
        }
    }

    /// Guesses of an earlier layer are worth nothing; whether new ones can be made.
    pub(super) fn forget_guesses(&mut self, can_be_made: bool) {
        self.guesses.clear();
        self.guesses_are_due = can_be_made;
    }

    /// Whether the link has time for a guess.
    pub(super) fn may_guess(&self) -> bool {
        let busy = self.places.in_flight() >= usize::from(self.limits.guesses_in_flight);
        !busy && self.idle.allows_guess()
    }

    /// The prefetcher, for a question about the whole machine; given back with its answer.
    pub(super) fn lend_prefetcher(&mut self) -> Box<dyn Prefetcher> {
        std::mem::replace(&mut self.prefetcher, Box::new(NoPrefetch))
    }

    pub(super) fn take_back(&mut self, prefetcher: Box<dyn Prefetcher>, guesses: Vec<Candidate>) {
        (self.prefetcher, self.guesses) = (prefetcher, guesses);
        self.guesses_are_due = false;
    }
}
