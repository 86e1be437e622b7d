//! The routed experts of one layer: who computes how many, and what waits for the disk.

use motley_cost::TransferCost;

use super::Whereabouts;
use super::case::{Case, dense_unit, phase_of};
use crate::calibration::{PathRate, UnitRates};

/// Most experts for which chances are summed exactly; above, means are taken.
const EXACT_EXPERTS: f64 = 64.0;

/// A disk for machines that describe none: a slow solid-state one.
pub const DEFAULT_DISK: PathRate = PathRate { gb_per_s: 1.0, latency_us: 200.0 };

/// Costs of one expert with the mean load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerCosts {
    /// Whether experts have more than one token.
    many: bool,
    /// A block beside its experts.
    block_us: f64,
    /// One expert where those that are not on the GPU are computed.
    unit_us: f64,
    /// One on a GPU with memory of its own.
    gpu_us: f64,
    /// One expert to that GPU.
    link_us: Option<f64>,
    /// One expert from disk, and the first one's latency.
    disk: (f64, f64),
    /// Handing rows to the GPU's side and back.
    sync_us: f64,
    /// Share of the experts on disk that are predicted, and the time before the block in which
    /// they can be read (H2).
    predicted: (f64, f64),
}

/// Expected times of one layer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LayerTime {
    /// Until everything is computed, if all were in memory.
    pub(crate) compute_us: f64,
    /// What the disk adds.
    pub(crate) wait_us: f64,
    /// How long the disk works.
    pub(crate) disk_us: f64,
}

impl LayerCosts {
    /// Of a pass over `tokens`, of which an expert gets `load` on average.
    pub(crate) fn of(case: &Case<'_>, tokens: u32, load: f64) -> Self {
        let (demand, calibration) = (case.demand, case.calibration);
        let matrices = demand.expert_matrices();
        let known = case.known(phase_of(tokens));
        let factor = known.map_or(1.0, |costs| costs.expert_factor);
        let apart = case.placement.has_gpu_memory();
        let one = |path: TransferCost| path.us(demand.expert_bytes as u64);
        let rate = |path: PathRate| path.cost();
        let alone = calibration.disk.unwrap_or(DEFAULT_DISK);
        let beside = known.and_then(|costs| costs.disk_gb_per_s);
        let disk = PathRate { gb_per_s: beside.unwrap_or(alone.gb_per_s), ..alone };
        Self {
            many: load > 1.0,
            block_us: known.map_or(0.0, |costs| costs.block_us),
            unit_us: factor * expert_unit(case).us(&matrices, load),
            gpu_us: dense_unit(case).us(&matrices, load),
            link_us: calibration.link.filter(|_| apart).map(rate).map(one),
            disk: (one(rate(disk)) - disk.latency_us, disk.latency_us),
            predicted: known.map_or((0.0, 0.0), |costs| {
                let layers = f64::from(demand.expert_layers).max(1.0);
                (costs.predicted.unwrap_or(0.0), f64::from(tokens) * costs.dense_us / layers)
            }),
            sync_us: calibration.link.filter(|_| apart).map_or(0.0, |link| 2.0 * link.latency_us),
        }
    }

    /// A layer that uses `experts` different experts.
    pub(crate) fn time(&self, experts: f64, there: &Whereabouts) -> LayerTime {
        if experts > EXACT_EXPERTS || experts.fract() != 0.0 {
            return self.split(experts, experts * there.on_gpu, experts * there.on_disk);
        }
        let count = experts as u32;
        let apart = if there.on_gpu < 1.0 { there.on_disk / (1.0 - there.on_gpu) } else { 0.0 };
        let mut sum = LayerTime::default();
        for (on_gpu, gpu_chance) in binomial(count, there.on_gpu) {
            for (on_disk, disk_chance) in binomial(count - on_gpu, apart) {
                let time = self.split(experts, f64::from(on_gpu), f64::from(on_disk));
                let chance = gpu_chance * disk_chance;
                sum.compute_us += chance * time.compute_us;
                sum.wait_us += chance * time.wait_us;
                sum.disk_us += chance * time.disk_us;
            }
        }
        sum
    }

    fn split(&self, experts: f64, on_gpu: f64, on_disk: f64) -> LayerTime {
        let one = self.unit_us;
        let elsewhere = experts - on_gpu;
        let (gpu_us, unit_us) = (on_gpu * self.gpu_us, elsewhere * one);
        let unit_us = self.with_transfers(unit_us, elsewhere);
        let sync_us = if elsewhere > 0.0 { self.sync_us } else { 0.0 };
        let compute_us = gpu_us.max(unit_us) + sync_us + self.block_us;
        let (per_expert, latency) = self.disk;
        // Less than one expert on average pays its part of the latency and of the last compute.
        let any = on_disk.min(1.0);
        let disk_us = on_disk * per_expert + any * latency;
        let wait_us = (disk_us + any * one - compute_us).max(0.0);
        let (share, before_us) = self.predicted;
        let predicted_us = (disk_us - before_us - compute_us).max(0.0);
        LayerTime { compute_us, wait_us: share * predicted_us + (1.0 - share) * wait_us, disk_us }
    }

    /// Experts with many tokens are also sent to the GPU, so that both finish together (H1).
    fn with_transfers(&self, unit_us: f64, experts: f64) -> f64 {
        match self.link_us {
            Some(link_us) if self.many => {
                let sent_us = experts * link_us.max(self.gpu_us);
                unit_us * sent_us / (unit_us + sent_us).max(f64::MIN_POSITIVE)
            }
            _ => unit_us,
        }
    }
}

/// Where experts that are not on the GPU are computed.
pub(crate) fn expert_unit<'a>(case: &Case<'a>) -> &'a UnitRates {
    if case.placement.has_gpu_memory() { &case.calibration.cpu } else { dense_unit(case) }
}

/// Every number of successes in `count` trials with its chance.
pub(crate) fn binomial(count: u32, chance: f64) -> Vec<(u32, f64)> {
    let chance = chance.clamp(0.0, 1.0);
    let mut chances = vec![0.0; count as usize + 1];
    chances[0] = 1.0;
    for trial in 1..=count as usize {
        for successes in (0..=trial).rev() {
            let before = if successes > 0 { chances[successes - 1] * chance } else { 0.0 };
            chances[successes] = chances[successes] * (1.0 - chance) + before;
        }
    }
    let possible = chances.into_iter().enumerate().filter(|(_, chance)| *chance > 0.0);
    possible.map(|(successes, chance)| (successes as u32, chance)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_sum_to_one_and_have_their_mean() {
        for (count, chance) in [(0, 0.3), (8, 0.0), (8, 1.0), (8, 0.25), (64, 0.9)] {
            let all = binomial(count, chance);
            let sum: f64 = all.iter().map(|(_, c)| c).sum();
            let mean: f64 = all.iter().map(|(n, c)| f64::from(*n) * c).sum();
            assert!((sum - 1.0).abs() < 1e-9 && (mean - f64::from(count) * chance).abs() < 1e-9);
        }
    }

    #[test]
    fn the_last_expert_from_disk_is_computed_after_it_arrives() {
        let costs = LayerCosts {
            many: false,
            block_us: 0.0,
            unit_us: 10.0,
            gpu_us: 1.0,
            link_us: None,
            disk: (100.0, 5.0),
            sync_us: 0.0,
            predicted: (0.0, 0.0),
        };
        let there = |on_disk| Whereabouts { on_gpu: 0.0, on_disk };
        let all = costs.time(8.0, &there(1.0));
        assert_eq!((all.compute_us, all.disk_us, all.wait_us), (80.0, 805.0, 735.0));
        assert_eq!(costs.time(8.0, &there(0.0)).wait_us, 0.0);
        let predicting = LayerCosts { predicted: (1.0, 25.0), ..costs };
        assert_eq!(predicting.time(8.0, &there(1.0)).wait_us, 805.0 - 80.0 - 25.0);
        let half = costs.time(8.0, &there(0.5));
        // Chance makes waiting longer than the mean number of misses would.
        assert!(half.wait_us > 4.0 * 100.0 + 5.0 + 10.0 - 80.0, "{half:?}");
    }
}
