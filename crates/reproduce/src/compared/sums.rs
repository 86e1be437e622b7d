//! The sums of a drive that are compared; they can be taken from one another. Adds and divides.

use motley_cost::Nanos;
use motley_sim::outcome::Outcome;

/// Most tiers of a compared machine.
pub(crate) const TIERS: usize = 4;

/// What a drive, or a stretch of it, came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DriveSums {
    pub(crate) tokens: u64,
    pub(crate) time: Nanos,
    pub(crate) lookups: u64,
    pub(crate) hits: u64,
    /// Everything but routed experts.
    pub(crate) dense: Nanos,
    /// Routed experts on each tier's unit.
    pub(crate) tiers: [Nanos; TIERS],
    /// Routed experts on home units.
    pub(crate) home: Nanos,
    /// Copies over each tier's link.
    pub(crate) links: [Nanos; TIERS],
}

impl DriveSums {
    pub(crate) fn of(outcome: Outcome) -> Self {
        let phase = if outcome.prefill.passes > 0 { outcome.prefill } else { outcome.decode };
        let of_tiers = |busy: &[Nanos]| {
            let mut sums = [Nanos::ZERO; TIERS];
            sums.iter_mut().zip(busy).for_each(|(sum, &busy)| *sum = busy);
            sums
        };
        Self {
            tokens: phase.tokens,
            time: phase.time,
            lookups: outcome.counts.lookups,
            hits: outcome.counts.hits + outcome.counts.guessed_hits,
            dense: outcome.dense_busy,
            tiers: of_tiers(&outcome.tier_busy),
            home: outcome.home_busy.iter().copied().sum(),
            links: of_tiers(&outcome.link_busy),
        }
    }

    /// What came after `before`, the beginning of the same drive.
    pub(crate) fn less(self, before: &Self) -> Self {
        let less = |all: [Nanos; TIERS], first: [Nanos; TIERS]| {
            std::array::from_fn(|tier| all[tier] - first[tier])
        };
        Self {
            tokens: self.tokens - before.tokens,
            time: self.time - before.time,
            lookups: self.lookups - before.lookups,
            hits: self.hits - before.hits,
            dense: self.dense - before.dense,
            tiers: less(self.tiers, before.tiers),
            home: self.home - before.home,
            links: less(self.links, before.links),
        }
    }

    /// Tokens per second; 0 of nothing.
    pub(crate) fn speed(&self) -> f64 {
        if self.tokens == 0 { 0.0 } else { self.tokens as f64 / self.time.as_s() }
    }

    /// Routed experts found in a tier.
    pub(crate) fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.lookups.max(1) as f64
    }

    /// Milliseconds of a token.
    pub(crate) fn ms(&self, busy: Nanos) -> f64 {
        1e3 * busy.as_s() / self.tokens.max(1) as f64
    }
}
