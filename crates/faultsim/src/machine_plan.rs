//! The machine a seed chooses: a disk, memory, up to four devices, and who decides. Runs nothing.

use motley_cost::{ComputeCost, TransferCost};
use motley_sched::cache::{Capacity, PolicyChoice};
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::regime::typical_hybrid;
use motley_sched::shares::Shares;
use motley_sched::strategy::StrategyChoice;
use motley_sched::{Costs, MemoryRules, Named, Rules, SchedulerLimits, SchedulerSetup};
use motley_trace::TraceHeader;
use motley_trace::record::FORMAT_VERSION;

/// Most devices: with the disk and memory, six memories.
const DEVICES_MAX: usize = 4;

/// A machine.
#[derive(Debug, Clone)]
pub struct MachinePlan {
    pub header: TraceHeader,
    pub rules: Rules,
    /// Slots of memory at most.
    pub slots: u32,
    /// Slots of each device.
    pub devices: Vec<u32>,
    /// What the scheduler takes things to cost, as if memory had every expert; nothing keeps to it.
    pub costs: Costs,
    pub disk: TransferCost,
    /// Layers out of 1000 whose successor is predicted.
    pub guesses_per_mille: u16,
    /// Copies and launches out of 1000 that fail.
    pub copy_fails: u16,
    pub launch_fails: u16,
}

impl MachinePlan {
    /// For a model of this shape, memory of `slots` at most and guesses so often.
    pub(crate) fn draw(
        rng: &mut fastrand::Rng,
        (layers, experts, k): (u16, u16, u16),
        slots: u32,
        guesses_per_mille: u16,
    ) -> Self {
        let (version, model) = (FORMAT_VERSION, "made".into());
        let header = TraceHeader { version, model, layers, experts, k };
        let strategy = choose(rng, StrategyChoice::ALL);
        let memory = |rng: &mut fastrand::Rng| MemoryRules {
            policy: choose(rng, PolicyChoice::ALL),
            prefetch: choose(rng, PrefetchChoice::ALL),
        };
        let (ram, devices) = (memory(rng), memory(rng));
        let rules = Rules { ram, devices, ..Rules::of(strategy, ram.policy, ram.prefetch) };
        let all = u32::from(layers) * u32::from(experts);
        let devices: Vec<u32> = (0..rng.usize(..=DEVICES_MAX)).map(|_| rng.u32(1..=all)).collect();
        let mut costs = typical_hybrid(1000).over_devices(devices.len());
        for tier in &mut costs.tiers {
            tier.unit = ComputeCost::constant(rng.f64() * 300.0);
            tier.link = TransferCost { latency_us: rng.f64() * 300.0, per_byte_us: 0.0 };
            tier.entry_us = rng.f64() * 50.0;
        }
        let fails = |rng: &mut fastrand::Rng| if rng.u8(..3) == 0 { rng.u16(1..300) } else { 0 };
        Self {
            header,
            rules,
            slots,
            devices,
            costs,
            disk: TransferCost { latency_us: rng.f64() * 900.0, per_byte_us: 0.0 },
            guesses_per_mille,
            copy_fails: fails(rng),
            // A launch that fails ends an answer.
            launch_fails: if rng.u8(..8) == 0 { rng.u16(1..20) } else { 0 },
        }
    }

    /// Who decides, as the engine builds it.
    pub(crate) fn setup(&self) -> SchedulerSetup {
        let disk = Costs::one_tier(ComputeCost::constant(0.0), self.disk, None, 1000);
        let setup = SchedulerSetup::beyond_ram(self.rules, self.slots, disk);
        let share = |&slots: &u32| {
            let limits = SchedulerLimits::beside_home(slots);
            let kept = slots.saturating_sub(u32::from(limits.staging_slots));
            Shares { capacity: Capacity::Global { slots: kept }, limits }
        };
        match self.devices.is_empty() {
            true => setup,
            false => {
                let shares = self.devices.iter().map(share).collect();
                setup.with_devices(shares, self.costs.clone(), Vec::new())
            }
        }
    }
}

fn choose<T: Copy>(rng: &mut fastrand::Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())]
}
