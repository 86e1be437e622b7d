//! What no schedule passes: the least a decoded token can take, with every choice known in advance,
//! the best caches there can be, and every unit and link at work whenever layers allow.
//!
//! For one token of `E` routed experts, dense work of `D`, units `u` and links `l`:
//!
//! ```text
//!   disk        T ≥ M · t_disk                   M: least reads with RAM and all GPUs as one memory
//!   copies      c ≤ Σ T / t_link                 over all links from RAM
//!   CPU         n ≥ V − c                        V: least misses with all GPUs as one memory
//!   GPUs        n ≥ E − Σ (T − D) / t_gpu
//!   CPU         T ≥ D + n · t_cpu                dense work and experts take turns
//! ```
//!
//! `M` and `V` are Belady's with bypass, and begin with the best residents there can be: what was
//! loaded before the measured tokens is free. Rows to other units are free as well. `n` need not be
//! whole.

use std::collections::BTreeSet;

use motley_sched::{Costs, Share};
use motley_sim::world::DenseCost;
use motley_trace::Trace;
use serde::Serialize;

/// Halvings in the search for the bound.
const HALVINGS: u32 = 60;

/// The least a token can take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bound {
    pub token_ms: f64,
    /// What would have to be faster.
    pub binds: Binds,
}

/// What a bound comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binds {
    Disk,
    /// The CPU's experts.
    Cpu,
    /// The GPUs' experts.
    Gpus,
    /// Copies to GPUs.
    Pcie,
    /// Everything but routed experts.
    Dense,
}

impl Binds {
    const ALL: [Self; 5] = [Self::Disk, Self::Cpu, Self::Gpus, Self::Pcie, Self::Dense];

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Cpu => "CPU",
            Self::Gpus => "GPUs",
            Self::Pcie => "PCIe",
            Self::Dense => "dense weights",
        }
    }
}

/// One token's work, microseconds and experts.
#[derive(Debug, Clone)]
pub(super) struct TokenWork {
    pub(super) dense_us: f64,
    /// Routed experts.
    pub(super) experts: f64,
    /// Of them to be read from disk at least; none where RAM has all.
    pub(super) reads: f64,
    /// Of them those that no memory of all GPUs has.
    pub(super) far: f64,
    pub(super) disk_us: f64,
    pub(super) cpu_us: f64,
    /// Of each GPU: computing an expert, copying one.
    pub(super) gpus: Vec<(f64, f64)>,
}

impl TokenWork {
    /// Of `experts` with these costs. `reads` and `far` are of one token.
    pub(super) fn new(costs: &Costs, dense: DenseCost, layers: u16, experts: f64) -> Self {
        let from_disk = costs.home.is_none();
        let load_us = |tier: u16| costs.load_time(tier, Share::WHOLE).as_us();
        let unit_us = |tier: u16| costs.tier_time(tier, 1, Share::WHOLE).as_us();
        let tiers = u16::from(from_disk)..costs.tiers.len() as u16;
        Self {
            dense_us: f64::from(layers) * (dense.layer_us + dense.layer_per_token_us)
                + dense.pass_us,
            experts,
            reads: 0.0,
            far: experts,
            disk_us: if from_disk { load_us(0) } else { 0.0 },
            cpu_us: match from_disk {
                true => unit_us(0),
                false => costs.home_time(1, Share::WHOLE).as_us(),
            },
            gpus: tiers.map(|tier| (unit_us(tier), load_us(tier))).collect(),
        }
    }

    /// The bound, and what binds: what lowers it most when it is twice as fast.
    pub(super) fn bound(&self) -> Bound {
        let faster = |binds: &Binds| self.twice_as_fast(*binds).least_us();
        let binds = Binds::ALL.into_iter().min_by(|a, b| faster(a).total_cmp(&faster(b)));
        Bound { token_ms: 1e-3 * self.least_us(), binds: binds.unwrap_or(Binds::Disk) }
    }

    fn twice_as_fast(&self, what: Binds) -> Self {
        let mut work = self.clone();
        match what {
            Binds::Disk => work.disk_us *= 0.5,
            Binds::Cpu => work.cpu_us *= 0.5,
            Binds::Gpus => work.gpus.iter_mut().for_each(|gpu| gpu.0 *= 0.5),
            Binds::Pcie => work.gpus.iter_mut().for_each(|gpu| gpu.1 *= 0.5),
            Binds::Dense => work.dense_us *= 0.5,
        }
        work
    }

    /// The least time, by halving: a longer token is never harder.
    pub(super) fn least_us(&self) -> f64 {
        let enough = self.dense_us + self.experts * self.cpu_us + self.reads * self.disk_us;
        let (mut low, mut high) = (0.0, enough);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.fits(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// Whether some `n` experts on the CPU satisfy every line of the module's head.
    fn fits(&self, token_us: f64) -> bool {
        let room = token_us - self.dense_us;
        if room < 0.0 || self.reads * self.disk_us > token_us {
            return false;
        }
        let copies: f64 = self.gpus.iter().map(|(_, load_us)| token_us / load_us).sum();
        let on_gpus: f64 = self.gpus.iter().map(|(unit_us, _)| room / unit_us).sum();
        let on_cpu = (self.far - copies).max(self.experts - on_gpus).max(0.0);
        on_cpu * self.cpu_us <= room
    }
}

/// Least loads of a memory of `slots` experts over the passes from `from` on, which begins with
/// whatever suits it best: after every use it keeps what is needed soonest.
pub(super) fn least_loads(trace: &Trace, slots: usize, from: u64) -> u64 {
    let grid = trace.header.grid();
    let measured = trace.visits.iter().filter(|visit| visit.pass >= from);
    let uses: Vec<usize> = measured
        .flat_map(|visit| visit.experts.iter().map(|&expert| grid.index(visit.key(expert))))
        .collect();
    let mut next = vec![usize::MAX; grid.len()];
    let mut next_of = vec![usize::MAX; uses.len()];
    for (at, &key) in uses.iter().enumerate().rev() {
        next_of[at] = std::mem::replace(&mut next[key], at);
    }
    // By next use; keys tell apart those never used again.
    let mut first: Vec<(usize, usize)> =
        next.into_iter().enumerate().map(|(k, n)| (n, k)).collect();
    first.sort_unstable();
    let mut kept: BTreeSet<(usize, usize)> = first.into_iter().take(slots).collect();
    let mut loads = 0;
    for (at, &key) in uses.iter().enumerate() {
        let was_there = kept.remove(&(at, key));
        loads += u64::from(!was_there);
        kept.insert((next_of[at], key));
        if kept.len() > slots {
            kept.pop_last();
        }
    }
    loads
}

#[cfg(test)]
mod tests {
    use motley_trace::{TraceHeader, Visit};

    use super::*;

    fn trace(uses: &[u16]) -> Trace {
        let visit = |(pass, &expert): (usize, &u16)| Visit {
            pass: pass as u64,
            positions: vec![pass as u32],
            experts: vec![expert],
            ..Visit::default()
        };
        let header = TraceHeader { version: 1, model: String::new(), layers: 1, experts: 4, k: 1 };
        Trace { header, visits: uses.iter().enumerate().map(visit).collect() }
    }

    #[test]
    fn the_best_memory_knows_what_comes() {
        let trace = trace(&[0, 1, 2, 0, 1, 2, 3, 0]);
        let loads = |slots| least_loads(&trace, slots, 0);
        // With two slots it begins with 0 and 1 and keeps 0: 2, 2 and 3 pass through.
        assert_eq!([0, 1, 2, 3, 4].map(loads), [8, 5, 3, 1, 0]);
        assert_eq!(least_loads(&trace, 1, 7), 0, "what is loaded before is free");
    }

    fn work() -> TokenWork {
        TokenWork {
            dense_us: 100.0,
            experts: 8.0,
            reads: 0.0,
            far: 6.0,
            disk_us: 400.0,
            cpu_us: 20.0,
            gpus: vec![(2.0, 50.0)],
        }
    }

    #[test]
    fn misses_are_shared_by_the_link_and_the_cpu() {
        // T = 100 + 20 n and n = 6 − T / 50: T (1 + 0.4) = 220.
        assert!((work().least_us() - 220.0 / 1.4).abs() < 1e-6);
        assert_eq!(work().bound().binds, Binds::Dense);
    }

    #[test]
    fn many_reads_make_the_disk_bind() {
        let work = TokenWork { reads: 2.0, ..work() };
        assert!((work.least_us() - 800.0).abs() < 1e-6);
        assert_eq!(work.bound().binds, Binds::Disk);
    }

    #[test]
    fn a_second_gpu_and_fewer_misses_never_take_longer() {
        let two = TokenWork { gpus: vec![(2.0, 50.0), (9.0, 90.0)], ..work() };
        assert!(two.least_us() < work().least_us());
        let fewer: Vec<f64> =
            (0..=8).map(|far| TokenWork { far: far.into(), ..work() }.least_us()).collect();
        assert!(fewer.is_sorted(), "{fewer:?}");
    }
}
