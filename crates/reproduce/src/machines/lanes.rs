//! Where the time of a decoded token goes, lane by lane, and what no schedule can pass: every lane
//! busy as much as the layers allow and every choice known in advance. Counts; schedules nothing.
//!
//! The bound, for one token of `E` routed experts of which a cache of this size misses at least
//! `M` (Belady's, with bypass, over all layers together):
//!
//! ```text
//!   copies      at most T / t_link
//!   CPU         n ≥ M − copies           each miss is brought or computed at home
//!   T ≥ D + entry + n · t_cpu            dense work and the CPU's experts take turns
//!   T ≥ D + (E − n) · t_gpu              so do dense work and the GPU's experts
//! ```
//!
//! `n` need not be whole, so a schedule that moves parts of experts (G2) is bound by it as well.

use motley_cost::Nanos;
use motley_sched::cache::belady::Belady;
use motley_sched::cache::{Capacity, ExpertCache};
use motley_sched::{Costs, SchedulerLimits, Share, Unit};
use motley_sim::replay::replay;
use motley_trace::Trace;
use serde::Serialize;

use crate::error::ReproduceError;

/// Halvings in the search for the bound.
const HALVINGS: u32 = 60;

/// Busy time of each lane in one decoded token, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lanes {
    /// The token.
    pub token_ms: f64,
    /// Everything but routed experts, on the GPU.
    pub dense_ms: f64,
    /// Routed experts on the GPU.
    pub gpu_ms: f64,
    /// Routed experts on the CPU.
    pub cpu_ms: f64,
    /// Copies to the GPU.
    pub link_ms: f64,
}

/// Lanes of the compared systems, and the bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DecodeLanes {
    /// Pinned experts.
    pub pinned: Lanes,
    /// Ours.
    pub ours: Lanes,
    /// Ours, moving parts of experts as well.
    pub parts: Lanes,
    /// What no schedule passes.
    pub bound: TokenBound,
}

impl DecodeLanes {
    /// The bound over the pinned policy.
    pub fn bound_gain(&self) -> f64 {
        self.pinned.token_ms / self.bound.token_ms
    }
}

/// The least a token can take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TokenBound {
    /// Time of the token.
    pub token_ms: f64,
    /// Most routed experts any cache of this size hits.
    pub most_hits: f64,
}

/// One token's work.
#[derive(Debug, Clone)]
pub(super) struct TokenWork {
    /// Everything but routed experts.
    pub(super) dense: Nanos,
    /// Routed experts.
    pub(super) experts: f64,
    /// Of them those that no cache of this size has.
    pub(super) misses: f64,
    /// What things cost.
    pub(super) costs: Costs,
}

impl TokenWork {
    /// The least time, by halving: a longer token is never harder.
    pub(super) fn bound_us(&self) -> f64 {
        let at_home = self.us(self.costs.home_time(1, Share::WHOLE));
        let entry = self.us(self.costs.entry_time(Unit::Home(0), 1));
        let (mut low, mut high) =
            (0.0, self.us(self.dense) + self.experts * (entry + at_home) + self.experts);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.fits(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// Whether some `n` experts on the CPU satisfy every line of the module's head.
    fn fits(&self, token_us: f64) -> bool {
        let room = token_us - self.us(self.dense);
        if room < 0.0 {
            return false;
        }
        let copies = token_us / self.us(self.costs.load_time(0, Share::WHOLE));
        let on_gpu = room / self.us(self.costs.tier_time(0, 1, Share::WHOLE));
        let needed = (self.misses - copies).max(self.experts - on_gpu).max(0.0);
        let at_home = self.us(self.costs.home_time(1, Share::WHOLE));
        needed == 0.0 || self.us(self.costs.entry_time(Unit::Home(0), 1)) + needed * at_home <= room
    }

    fn us(&self, time: Nanos) -> f64 {
        time.as_us()
    }
}

/// Most hits any cache of `slots` and the default staging buffers has over the passes from
/// `count_from` on, in part of what is needed.
pub(super) fn most_hits(trace: &Trace, slots: u32, count_from: u64) -> Result<f64, ReproduceError> {
    let grid = trace.header.grid();
    let all = slots + u32::from(SchedulerLimits::default().staging_slots);
    let capacity = Capacity::Global { slots: all.min(grid.len() as u32) };
    let Some(future) = Belady::new(trace) else { return Ok(1.0) };
    let mut cache = ExpertCache::new(grid, capacity, Box::new(future));
    Ok(replay(&mut trace.source(), &mut cache, count_from)?.decode.rate())
}

#[cfg(test)]
mod tests {
    use motley_cost::{ComputeCost, TransferCost};
    use motley_sched::{Homes, Layout};

    use super::*;

    fn work(misses: f64) -> TokenWork {
        let home = Homes {
            units: 1,
            layout: Layout::Whole,
            unit: ComputeCost::constant(20.0),
            entry_us: 5.0,
            entry_per_token_us: 0.0,
        };
        let costs = Costs::one_tier(
            ComputeCost::constant(2.0),
            TransferCost { latency_us: 50.0, per_byte_us: 0.0 },
            Some(home),
            1,
        );
        TokenWork { dense: Nanos::from_us(100.0), experts: 8.0, misses, costs }
    }

    #[test]
    fn without_misses_the_gpu_alone_binds() {
        // 8 experts of 2 us on the GPU beside none on the CPU, whose entry alone takes 5.
        assert!((work(0.0).bound_us() - 115.0).abs() < 0.6, "{}", work(0.0).bound_us());
    }

    #[test]
    fn misses_are_shared_by_the_link_and_the_cpu() {
        // T = 105 + 20 n and n = 6 − T / 50: T (1 + 0.4) = 225.
        assert!((work(6.0).bound_us() - 225.0 / 1.4).abs() < 1e-6);
    }

    #[test]
    fn fewer_misses_never_take_longer() {
        let bounds: Vec<f64> = (0..=8).map(|misses| work(f64::from(misses)).bound_us()).collect();
        assert!(bounds.is_sorted(), "{bounds:?}");
    }
}
