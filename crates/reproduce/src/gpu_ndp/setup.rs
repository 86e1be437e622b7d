//! The systems compared on one GPU with near-data units (G6): how each is put together and run.
//! No published number but the models' and the machine's.

use motley_cost::{ComputeCost, Efficiency, Nanos, TransferCost};
use motley_machine::{Machine, MachineError};
use motley_sched::cache::lru::Lru;
use motley_sched::cache::{Capacity, ExpertCache};
use motley_sched::prefetch::{NoPrefetch, PrefillCounted};
use motley_sched::strategy::{Balanced, CpuOnMiss, Monde, OnDemand};
use motley_sched::{
    Costs, Homes, Layout, Scheduler, SchedulerLimits, SchedulerParts, Strategy, TierParts,
};
use motley_sim::drive::drive;
use motley_sim::outcome::Outcome;
use motley_sim::synth::{Synth, SynthParams};
use motley_sim::world::{DenseCost, World};
use motley_trace::{ExpertKey, Phase, Trace};

use super::assumed::Assumptions;
use super::models::Model;
use crate::error::{ReproduceError, lacks};

/// Units the source simulates.
pub const UNITS: [u16; 3] = [2, 4, 6];

/// Who schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// Every expert over the link.
    OnDemand,
    /// Experts on the CPU.
    Fiddler,
    /// Whole experts on near-data units.
    Monde,
    /// G1.
    Tp,
    /// G1 with G2 and G3.
    TpLb,
    /// G1 with G4.
    TpPre,
    /// G1 to G5.
    All,
}

/// One simulated run.
pub struct Run<'a> {
    /// The machine with its units.
    pub machine: &'a Machine,
    /// The model.
    pub model: &'a Model,
    /// Its routing.
    pub trace: &'a Trace,
    /// What is left open.
    pub open: Assumptions,
    /// Whether attention and the rest count (end to end) or only the experts.
    pub dense: bool,
}

impl Run<'_> {
    /// Simulates `system`.
    pub fn outcome(&self, system: System) -> Result<Outcome, ReproduceError> {
        let costs = self.costs(system)?;
        let grid = self.trace.header.grid();
        let residents = self.residents(system);
        let capacity = Capacity::PerLayer { slots: vec![self.slots(system); grid.layers.into()] };
        let mut scheduler = Scheduler::new(SchedulerParts {
            costs: costs.clone(),
            tiers: vec![TierParts {
                cache: ExpertCache::new(grid, capacity, Box::new(Lru::new())),
                prefetcher: Box::new(NoPrefetch),
                limits: SchedulerLimits::default(),
            }],
            strategy: strategy(system, self.open),
        });
        // Prefetching happens once between prefill and decode; its time is added below.
        let prefill = self.part(Phase::Prefill);
        let decode = self.part(Phase::Decode);
        let mut world = World::new(costs.clone(), self.dense_cost()?);
        let mut outcome = drive(&mut prefill.source(), &mut scheduler, &mut world, None)?;
        scheduler.preload(0, &residents);
        let later = drive(&mut decode.source(), &mut scheduler, &mut world, None)?;
        outcome.decode = later.decode;
        let one = costs.load_time(0, motley_sched::Share::WHOLE);
        let loading: Nanos = residents.iter().map(|_| one).sum();
        outcome.wall = outcome.prefill.time + loading + outcome.decode.time;
        Ok(outcome)
    }

    /// Whether all experts fit the units.
    pub fn fits(&self, units: u16) -> bool {
        self.model.expert_bytes() <= u64::from(units) * (32 << 30)
    }

    fn part(&self, phase: Phase) -> Trace {
        let visits = self.trace.visits.iter().filter(|visit| visit.phase == phase);
        Trace { header: self.trace.header.clone(), visits: visits.cloned().collect() }
    }

    fn slots(&self, system: System) -> u32 {
        match system {
            System::TpPre | System::All => self.model.prefetched,
            _ => 0,
        }
    }

    /// G4: the most used experts of prefill.
    fn residents(&self, system: System) -> Vec<ExpertKey> {
        let grid = self.trace.header.grid();
        let mut counted = PrefillCounted::new(grid);
        let mut buffer = motley_sched::cache::RoutedBuffer::new(&self.trace.header);
        for visit in self.trace.visits.iter().filter(|visit| visit.phase == Phase::Prefill) {
            counted.count(&buffer.fill(visit));
        }
        let slots = (self.slots(system) * u32::from(grid.layers)) as usize;
        counted.order().into_iter().take(slots).collect()
    }

    fn costs(&self, system: System) -> Result<Costs, ReproduceError> {
        let shape = self.model.shape();
        let device = |name: &str| lacks(self.machine, self.machine.device(name), "such device");
        let pcie = lacks(self.machine, self.machine.link("ndp", "gpu"), "link from ndp to gpu")?;
        let reached = |bandwidth| Efficiency { compute: 0.5, bandwidth };
        let fast = ComputeCost::derive(device("gpu")?, &shape, reached(0.8));
        let near = device("ndp")?;
        let mut unit = ComputeCost::derive(near, &shape, reached(self.open.near_efficiency));
        unit.per_token_us = unit.floor_us / self.open.near_reuse;
        let units = near.count as u16;
        let link = TransferCost::derive(pcie, reached(self.open.link_efficiency));
        let row_us = shape.row_bytes(2) as f64 * link.per_byte_us;
        let pairs = f64::from(self.model.top_k);
        let home = match system {
            System::OnDemand => None,
            System::Fiddler => Some(Homes {
                units: 1,
                layout: Layout::Whole,
                unit: ComputeCost::derive(
                    device("cpu")?,
                    &shape,
                    reached(self.open.cpu_efficiency),
                ),
                entry_us: 2.0 * self.open.activation_us,
                entry_per_token_us: 2.0 * pairs * row_us,
            }),
            System::Monde => Some(Homes {
                units,
                layout: Layout::Whole,
                unit,
                entry_us: 2.0 * self.open.activation_us,
                entry_per_token_us: 2.0 * pairs * row_us,
            }),
            _ => Some(Homes {
                units,
                layout: Layout::Split,
                unit,
                entry_us: f64::from(units + 1) * self.open.activation_us,
                entry_per_token_us: f64::from(units + 1) * row_us,
            }),
        };
        Ok(Costs::one_tier(fast, link, home, shape.bytes))
    }

    fn dense_cost(&self) -> Result<DenseCost, ReproduceError> {
        if !self.dense {
            return Ok(DenseCost::default());
        }
        let gpu = lacks(self.machine, self.machine.device("gpu"), "gpu")?;
        let bytes_per_us = gpu.bandwidth_gb_per_s * 1e3 * 0.8;
        let flop_per_us = gpu.compute_tflops * 1e6 * 0.5;
        let shared = f64::from(self.model.shared) * self.model.shape().bytes as f64;
        let layer_bytes = self.model.attention_m * 2e6 + shared;
        Ok(DenseCost {
            layer_us: layer_bytes / bytes_per_us + 10.0 * gpu.launch_us,
            layer_per_token_us: layer_bytes / flop_per_us,
            pass_us: self.model.ends_m * 1e6 / bytes_per_us,
        })
    }
}

fn strategy(system: System, open: Assumptions) -> Box<dyn Strategy> {
    match system {
        System::OnDemand => Box::new(OnDemand::default()),
        System::Fiddler => Box::new(CpuOnMiss::default()),
        System::Monde => Box::new(Monde::with_alpha(open.monde_alpha)),
        System::Tp | System::TpPre => Box::new(Balanced::new(false, true)),
        System::TpLb | System::All => Box::new(Balanced::new(true, true)),
    }
}

/// Routing of a model: 512 tokens in, 512 out, batch 1.
pub fn routing(model: &Model, skew: f64, seed: u64) -> Result<Trace, ReproduceError> {
    let few = model.experts <= 16;
    let params = SynthParams {
        model: model.name.into(),
        layers: model.layers,
        experts: model.experts,
        k: model.top_k,
        prompt_tokens: 512,
        decode_tokens: 512,
        zipf_skew: if few { skew / 3.0 } else { skew },
        repeat: 0.2,
        recall: 0.6,
        layer_correlation: 0.9,
        weight_tilt: 0.3,
    };
    Ok(Trace::collect(&mut Synth::new(params, seed)?)?)
}

/// The machine with that many units.
pub fn machine(units: u16) -> Result<Machine, MachineError> {
    motley_machine::find(&format!("rtx5080-i7-14700-ndp{units}"))
}
