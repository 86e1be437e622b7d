//! The systems HybriMoE is compared with, on its machine and models (H5): how each is put
//! together and run. No published number but the models' and the machine's.

use motley_cost::{ComputeCost, Efficiency, ExpertShape, TransferCost};
use motley_machine::Machine;
use motley_sched::cache::lru::Lru;
use motley_sched::cache::mrs::{Mrs, MrsParams};
use motley_sched::cache::{CachePolicy, Capacity, ExpertCache};
use motley_sched::prefetch::{NextLayer, NoPrefetch, Prefetcher, Refill};
use motley_sched::strategy::{LayerSplit, OnDemand, Pinned, TimelineStrategy};
use motley_sched::{Costs, Homes, Layout, Limits, Scheduler, SchedulerParts, Strategy};
use motley_trace::{ExpertKey, Trace};

use super::super::ReproduceError;
use super::super::lacks;
use super::routing::Routing;
use crate::drive::drive;
use crate::foresight::ForesightParams;
use crate::outcome::Outcome;
use crate::spans::Spans;
use crate::world::{DenseCost, World};

/// A model of the source's Table II.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// Layers.
    pub layers: u16,
    /// Routed experts per layer.
    pub experts: u16,
    /// Activated experts.
    pub top_k: u16,
    /// Width of a hidden row.
    pub hidden: u32,
    /// Width inside a routed expert.
    pub intermediate: u32,
    /// LRU hit rate with a quarter of the experts cached (Figure 9 and section VI-D).
    pub lru_quarter: f64,
}

/// The three models. Table II prints 18944 for Qwen2's routed experts; that is the width of its
/// dense layers and would make 57 billion parameters 365. The model's own 2560 is used.
pub const MODELS: [Model; 3] = [
    Model {
        name: "Mixtral",
        layers: 32,
        experts: 8,
        top_k: 2,
        hidden: 4096,
        intermediate: 14336,
        lru_quarter: 0.302,
    },
    Model {
        name: "Qwen2",
        layers: 28,
        experts: 64,
        top_k: 8,
        hidden: 3584,
        intermediate: 2560,
        lru_quarter: 0.450,
    },
    Model {
        name: "DeepSeek",
        layers: 26,
        experts: 64,
        top_k: 6,
        hidden: 2048,
        intermediate: 1408,
        lru_quarter: 0.477,
    },
];

/// Cached parts of all experts.
pub const RATIOS: [f64; 3] = [0.25, 0.5, 0.75];
/// Prompt lengths.
pub const PROMPTS: [u32; 4] = [32, 128, 512, 1024];

/// What the source leaves open. Swept in the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Weights per second the CPU kernels get through at one token.
    pub cpu_gb_per_s: f64,
    /// Arithmetic of the CPU kernels at many tokens.
    pub cpu_gflop_per_s: f64,
    /// Experts over PCIe.
    pub link_gb_per_s: f64,
    /// Attention, router and shared experts of one layer.
    pub dense_layer_us: f64,
    /// Chance that a choice one layer ahead is foreseen.
    pub foresight: f64,
    /// Skew of expert popularity.
    pub skew: f64,
    /// `alpha` of MRS.
    pub mrs_alpha: f64,
}

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
    /// Who decides, with [`Limits::default`].
    pub scheduler: Scheduler,
    /// Experts on the device to begin with, at no cost.
    pub residents: Vec<ExpertKey>,
    /// What experts and copies take.
    pub costs: Costs,
    /// What everything else takes.
    pub dense: DenseCost,
    /// How well the coming layers are foreseen.
    pub foresight: ForesightParams,
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
        let SetUp { mut scheduler, residents, costs, dense, foresight } = self.set_up(system)?;
        scheduler.preload(&residents);
        let mut world = World::new(costs, dense).with_foresight(foresight);
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
            costs,
            cache: ExpertCache::new(grid, capacity, self.policy(system)),
            strategy: strategy(system),
            prefetcher: prefetcher(system),
            limits: Limits::default(),
        });
        let per_layer = slots / u32::from(grid.layers);
        let residents: Vec<ExpertKey> = match system {
            System::LlamaCpp => LayerSplit::residents(grid, slots),
            _ => Pinned::residents(grid, &self.routing.uses, per_layer),
        };
        let foresight = ForesightParams { layers: 3, accuracy: self.open.foresight, seed: 5 };
        Ok(SetUp { scheduler, residents, costs, dense: self.dense(), foresight })
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
        Ok(Costs {
            fast: ComputeCost::derive(gpu, &shape, Efficiency::USUAL),
            home: (system != System::AdapMoe).then_some(home),
            link: TransferCost::new(link.latency_us, self.open.link_gb_per_s),
            expert_bytes: shape.bytes,
        })
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
