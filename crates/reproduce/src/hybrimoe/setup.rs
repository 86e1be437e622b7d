//! The systems HybriMoE is compared with, on its machine and models (H5): how each is put
//! together and run. No published number but the models' and the machine's.

use motley_cost::{ComputeCost, Efficiency, ExpertShape, TransferCost};
use motley_machine::Machine;
use motley_sched::cache::lru::Lru;
use motley_sched::cache::mrs::{Mrs, MrsParams};
use motley_sched::cache::{CachePolicy, Capacity, ExpertCache};
use motley_sched::prefetch::{NextLayer, NoPrefetch, Prefetcher, Refill};
use motley_sched::strategy::{LayerSplit, OnDemand, Pinned, TimelineStrategy};
use motley_sched::{
    Costs, Homes, Layout, Scheduler, SchedulerLimits, SchedulerParts, Strategy, TierParts,
};
use motley_sim::drive::drive;
use motley_sim::outcome::Outcome;
use motley_sim::predictions::{LayersAhead, PredictionParams};
use motley_sim::spans::Spans;
use motley_sim::world::{DenseCost, World};
use motley_trace::{ExpertKey, Trace};

use super::assumed::Assumptions;
use super::models::Model;
use super::routing::Routing;
use crate::error::{ReproduceError, lacks};

/// Cached parts of all experts.
pub const RATIOS: [f64; 3] = [0.25, 0.5, 0.75];
/// Prompt lengths.
pub const PROMPTS: [u32; 4] = [32, 128, 512, 1024];
/// The source looks three layers ahead (H2), in both phases.
const PREDICTED: LayersAhead = LayersAhead { prompts: 3, decode: 3 };

/// Who schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Whole layers here or there.
    LlamaCpp,
    /// On demand, LRU, prefetching; no CPU.
    AdapMoe,
    /// Pinned by frequency, misses on the CPU in decode.
    KTransformers,
    /// kTransformers with H1.
    Scheduling,
    /// kTransformers with H2.
    Prefetching,
    /// kTransformers with H3.
    Caching,
    /// H1, H2 and H3.
    HybriMoe,
}

/// A system put together for one model, before its first pass.
pub struct SetUp {
    /// Who decides, with [`SchedulerLimits::default`].
    pub scheduler: Scheduler,
    /// Experts on the device to begin with, at no cost.
    pub residents: Vec<ExpertKey>,
    /// What experts and copies take.
    pub costs: Costs,
    /// What everything else takes.
    pub dense: DenseCost,
    /// How well the coming layers are predicted.
    pub predictions: PredictionParams,
}

/// One simulated run.
pub struct Run<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The model.
    pub model: &'a Model,
    /// Its routing.
    pub routing: &'a Routing,
    /// Cached part of all experts.
    pub ratio: f64,
    /// What is left open.
    pub open: Assumptions,
}

impl Run<'_> {
    /// Seconds per decoded token.
    pub fn decode_s(&self, system: System) -> Result<f64, ReproduceError> {
        Ok(self.outcome(system, &self.routing.decode, None)?.decode.pass_s())
    }

    /// Seconds for a prompt.
    pub fn prefill_s(&self, system: System, tokens: u32) -> Result<f64, ReproduceError> {
        Ok(self.outcome(system, &self.routing.prompt(tokens), None)?.prefill.pass_s())
    }

    /// What runs when in decode.
    pub fn decode_spans(&self, system: System) -> Result<Spans, ReproduceError> {
        let mut spans = Spans::default();
        self.outcome(system, &self.routing.decode, Some(&mut spans))?;
        Ok(spans)
    }

    /// A trace of this model in virtual time.
    pub fn outcome(
        &self,
        system: System,
        trace: &Trace,
        spans: Option<&mut Spans>,
    ) -> Result<Outcome, ReproduceError> {
        let SetUp { mut scheduler, residents, costs, dense, predictions } = self.set_up(system)?;
        scheduler.preload(0, &residents);
        let mut world = World::new(costs, dense).with_predictions(predictions);
        Ok(drive(&mut trace.source(), &mut scheduler, &mut world, spans)?)
    }

    /// What is driven, for a driver of any kind.
    pub fn set_up(&self, system: System) -> Result<SetUp, ReproduceError> {
        let grid = self.routing.decode.header.grid();
        let costs = self.costs(system)?;
        let capacity = Capacity::per_layer_share(grid, self.ratio);
        let slots = capacity.total();
        let capacity = match system {
            System::LlamaCpp => Capacity::Global { slots },
            _ => capacity,
        };
        let scheduler = Scheduler::new(SchedulerParts {
            costs: costs.clone(),
            tiers: vec![TierParts {
                cache: ExpertCache::new(grid, capacity, self.policy(system)),
                prefetcher: prefetcher(system),
                limits: SchedulerLimits::default(),
            }],
            strategy: strategy(system),
        });
        let per_layer = slots / u32::from(grid.layers);
        let residents: Vec<ExpertKey> = match system {
            System::LlamaCpp => LayerSplit::residents(grid, slots),
            _ => Pinned::residents(grid, &self.routing.uses, per_layer),
        };
        let accuracy = self.open.prediction_accuracy;
        let predictions = PredictionParams { layers: PREDICTED, accuracy, seed: 5 };
        Ok(SetUp { scheduler, residents, costs, dense: self.dense(), predictions })
    }

    fn policy(&self, system: System) -> Box<dyn CachePolicy> {
        match system {
            System::Caching | System::HybriMoe => {
                let top = 2 * self.model.top_k;
                let params = MrsParams { alpha: self.open.mrs_alpha, top };
                Box::new(Mrs::new(self.routing.decode.header.grid(), params))
            }
            _ => Box::new(Lru::new()),
        }
    }

    fn costs(&self, system: System) -> Result<Costs, ReproduceError> {
        let shape = ExpertShape::new(self.model.hidden, self.model.intermediate, BITS);
        let gpu = lacks(self.machine, self.machine.device("gpu"), "gpu")?;
        let cpu = lacks(self.machine, self.machine.device("cpu"), "cpu")?;
        let link = lacks(self.machine, self.machine.link("cpu", "gpu"), "link to the gpu")?;
        let unit = ComputeCost {
            launch_us: cpu.launch_us,
            per_token_us: shape.flop_per_token() / (self.open.cpu_gflop_per_s * 1e3),
            floor_us: shape.bytes as f64 / (self.open.cpu_gb_per_s * 1e3),
        };
        let home =
            Homes { units: 1, layout: Layout::Whole, unit, entry_us: 0.0, entry_per_token_us: 0.0 };
        Ok(Costs::one_tier(
            ComputeCost::derive(gpu, &shape, Efficiency::DEFAULT),
            TransferCost::new(link.latency_us, self.open.link_gb_per_s),
            (system != System::AdapMoe).then_some(home),
            shape.bytes,
        ))
    }

    fn dense(&self) -> DenseCost {
        DenseCost {
            layer_us: self.open.dense_layer_us,
            // Attention and shared experts of one token: some 100 MFLOP at 100 TFLOP/s.
            layer_per_token_us: 1.0,
            pass_us: 2.0 * self.open.dense_layer_us,
        }
    }
}

/// Four-bit weights with their scales.
const BITS: f64 = 4.5;

fn strategy(system: System) -> Box<dyn Strategy> {
    match system {
        System::LlamaCpp => Box::new(LayerSplit::default()),
        System::AdapMoe => Box::new(OnDemand::default()),
        System::KTransformers | System::Prefetching | System::Caching => {
            Box::new(Pinned::default())
        }
        System::Scheduling => Box::new(TimelineStrategy::with_fixed_residents()),
        System::HybriMoe => Box::new(TimelineStrategy::default()),
    }
}

fn prefetcher(system: System) -> Box<dyn Prefetcher> {
    match system {
        System::AdapMoe | System::Prefetching => Box::new(NextLayer::default()),
        System::Caching => Box::new(Refill::after(Box::new(NoPrefetch))),
        System::HybriMoe => Box::new(Refill::after(Box::new(NextLayer::default()))),
        System::LlamaCpp | System::KTransformers | System::Scheduling => Box::new(NoPrefetch),
    }
}
