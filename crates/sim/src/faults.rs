//! Faults by seed: a link that slows down, transfers that fail, units that stall.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// How often things go wrong. The default is never.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Chance that a transfer fails after its time.
    pub load_fails: f64,
    /// Chance that a transfer begins a slow stretch.
    pub link_slows: f64,
    /// Transfers in a slow stretch.
    pub slow_loads: u32,
    /// How many times longer a transfer takes in it, at least 1.
    pub link_factor: f64,
    /// Chance that a computation is disturbed.
    pub unit_stalls: f64,
    /// How many times longer a disturbed computation takes, at least 1.
    pub unit_factor: f64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            load_fails: 0.0,
            link_slows: 0.0,
            slow_loads: 0,
            link_factor: 1.0,
            unit_stalls: 0.0,
            unit_factor: 1.0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct FaultStream {
    faults: Faults,
    random: Pcg64,
    slow_left: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadFault {
    pub(crate) slower: f64,
    pub(crate) ok: bool,
}

impl FaultStream {
    pub(crate) fn new(faults: Faults, seed: u64) -> Self {
        Self { faults, random: Pcg64::seed_from_u64(seed), slow_left: 0 }
    }

    pub(crate) fn next_load(&mut self) -> LoadFault {
        if self.random.random::<f64>() < self.faults.link_slows {
            self.slow_left = self.faults.slow_loads;
        }
        let slow = self.slow_left > 0;
        self.slow_left = self.slow_left.saturating_sub(1);
        let slower = if slow { self.faults.link_factor.max(1.0) } else { 1.0 };
        LoadFault { slower, ok: self.random.random::<f64>() >= self.faults.load_fails }
    }

    pub(crate) fn next_compute(&mut self) -> f64 {
        let stalls = self.random.random::<f64>() < self.faults.unit_stalls;
        if stalls { self.faults.unit_factor.max(1.0) } else { 1.0 }
    }
}
