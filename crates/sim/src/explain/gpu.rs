//! "What if there were a GPU": the routing of a recorded run again in the hybrid regime, with the
//! GPU and the link of a ready machine (M2). What the GPU does is predicted from a description;
//! the CPU's experts cost what they were measured to cost in the run.
//!
//! Experts are in RAM, as many as fit also on the GPU; H1 shares each layer between both. Dense
//! layers go to the GPU and become as much faster there as experts do.

use motley_cost::{ComputeCost, Efficiency, TransferCost};
use motley_machine::{DeviceKind, Machine};
use motley_plan::headroom::beside_unknown_dense;
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice};
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::strategy::TimelineStrategy;
use motley_sched::{Costs, Homes, Layout, Scheduler, SchedulerLimits, SchedulerParts, TierParts};
use motley_trace::{ExpertKey, PhaseRecord, RunRecord, Trace};

use super::change::Change;
use crate::drive::drive;
use crate::outcome::Outcome;
use crate::rerun::{PhaseCosts, Rerun, RerunError};
use crate::shape::DEFAULT_BITS;
use crate::world::{DenseCost, Truth, World};

/// The ready machines whose GPUs are tried.
const LIKE: [&str; 2] = ["laptop-8gb-gpu", "desktop-24gb-gpu"];

/// A run with a GPU beside it.
pub(super) struct WithGpu {
    /// What it is compared as.
    pub(super) change: Change,
    policy: PolicyChoice,
    slots: u32,
    prefill: Truth,
    decode: Truth,
}

/// One run for each GPU; none beside workers, which would be divided anew.
pub(super) fn with_gpus(record: &RunRecord, rerun: &Rerun, trace: &Trace) -> Vec<WithGpu> {
    if !record.workers.is_empty() {
        return Vec::new();
    }
    let machines = LIKE.iter().filter_map(|name| Some((*name, motley_machine::find(name).ok()?)));
    machines.filter_map(|(name, machine)| beside(name, &machine, (record, rerun), trace)).collect()
}

fn beside(
    like: &'static str,
    machine: &Machine,
    (record, rerun): (&RunRecord, &Rerun),
    trace: &Trace,
) -> Option<WithGpu> {
    let (gpu, cpu) = (machine.first(DeviceKind::Gpu)?, machine.first(DeviceKind::Cpu)?);
    let link = machine.link(&cpu.name, &gpu.name)?;
    let room = beside_unknown_dense(gpu.total_memory_bytes());
    let all = record.expert_layers * u32::from(trace.header.experts);
    let fitting = room.checked_div(record.expert_bytes).unwrap_or(0);
    let slots = u32::try_from(fitting).unwrap_or(u32::MAX).min(all);
    let device = OnGpu {
        // Of four-bit weights with their scales: only prompts feel the difference.
        expert: expert_cost(gpu, record.expert_bytes, DEFAULT_BITS),
        link: TransferCost::new(link.latency_us, link.bandwidth_gb_per_s),
        bytes: record.expert_bytes,
    };
    Some(WithGpu {
        change: Change::Gpu {
            like,
            memory_gib: gpu.memory_gib,
            experts: slots,
            more_ram: slots.saturating_add(rerun.cache_slots) < all,
        },
        policy: rerun.policy,
        slots,
        prefill: device.truth(&rerun.prefill, &record.prefill),
        decode: device.truth(&rerun.decode, &record.decode),
    })
}

fn expert_cost(gpu: &motley_machine::Device, bytes: u64, bits: f64) -> ComputeCost {
    let Efficiency { compute, bandwidth } = Efficiency::DEFAULT;
    let flop = 2.0 * bytes as f64 * 8.0 / bits;
    ComputeCost {
        launch_us: gpu.launch_us,
        per_token_us: flop / (gpu.compute_tflops * 1e6 * compute),
        floor_us: bytes as f64 / (gpu.bandwidth_gb_per_s * 1e3 * bandwidth),
    }
}

/// Costs of the described side.
struct OnGpu {
    expert: ComputeCost,
    link: TransferCost,
    bytes: u64,
}

impl OnGpu {
    fn truth(&self, measured: &PhaseCosts, phase: &PhaseRecord) -> Truth {
        let home = Homes {
            units: 1,
            layout: Layout::Whole,
            unit: measured.expert,
            // Rows to the CPU and back.
            entry_us: 2.0 * self.link.latency_us,
            entry_per_token_us: 0.0,
        };
        let costs = Costs::one_tier(self.expert, self.link, Some(home), self.bytes);
        Truth { costs, dense: self.dense(measured, phase) }
    }

    /// Dense layers by the ratio of one expert here to one there; overhead stays.
    fn dense(&self, measured: &PhaseCosts, phase: &PhaseRecord) -> DenseCost {
        let load = (phase.expert_tokens / phase.experts.max(1)).max(1);
        let load = u32::try_from(load).unwrap_or(u32::MAX);
        let (here, there) = (self.expert.us(load), measured.expert.us(load));
        let ratio = if there > 0.0 { (here / there).min(1.0) } else { 1.0 };
        let (dense, overhead) = (phase.dense_s(), phase.overhead_s());
        let whole = dense + overhead;
        let part = if whole > 0.0 { (dense * ratio + overhead) / whole } else { 1.0 };
        DenseCost {
            layer_us: measured.dense.layer_us * part,
            layer_per_token_us: measured.dense.layer_per_token_us * part,
            pass_us: measured.dense.pass_us * part,
        }
    }
}

impl WithGpu {
    /// The same routing, from a GPU that holds the first experts of every layer.
    pub(super) fn run(&self, trace: &Trace) -> Result<Outcome, RerunError> {
        let grid = trace.header.grid();
        let mut scheduler = Scheduler::new(SchedulerParts {
            costs: self.decode.costs.clone(),
            tiers: vec![TierParts {
                cache: ExpertCache::new(
                    grid,
                    Capacity::Global { slots: self.slots },
                    self.policy.build(&trace.header),
                ),
                prefetcher: PrefetchChoice::Refill.build(grid),
                limits: SchedulerLimits::default(),
            }],
            strategy: Box::new(TimelineStrategy::default()),
        });
        let rank_by_rank = (0..grid.experts)
            .flat_map(|expert| (0..grid.layers).map(move |layer| ExpertKey::new(layer, expert)));
        scheduler.preload(0, &rank_by_rank.take(self.slots as usize).collect::<Vec<_>>());
        let world = World::new(self.decode.costs.clone(), self.decode.dense);
        let mut world = world.with_prefill(self.prefill.clone());
        Ok(drive(&mut trace.source(), &mut scheduler, &mut world, None)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{record, trace};

    #[test]
    fn the_cpu_costs_what_was_measured_and_overhead_stays() {
        let (record, trace) = (record(), trace());
        let rerun = Rerun::of(&record).unwrap();
        for gpu in with_gpus(&record, &rerun, &trace) {
            let home = gpu.decode.costs.home.expect("the CPU computes too");
            assert_eq!(home.unit, rerun.decode.expert);
            let (before, after) = (rerun.decode.dense, gpu.decode.dense);
            assert!(after.layer_per_token_us < before.layer_per_token_us);
            let overhead = record.decode.overhead_s() / record.decode.blocks as f64;
            assert!(after.layer_per_token_us >= 1e6 * overhead * 0.999, "{after:?}");
        }
    }
}
