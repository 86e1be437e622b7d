//! The compared systems on one machine with one model: where experts live, what that costs, and
//! one drive per system and phase. Puts together; judges nothing.

use motley_cost::{ComputeCost, Efficiency, Nanos, TransferCost};
use motley_machine::{Device, DeviceKind, Machine};
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice};
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::regime::Regime;
use motley_sched::strategy::{
    LayerSplit, OnDemand, PartsStrategy, Pinned, Strategy, TimelineStrategy,
};
use motley_sched::{Costs, Homes, Layout, Scheduler, SchedulerLimits, SchedulerParts, TierParts};
use motley_sim::drive::drive;
use motley_sim::outcome::Outcome;
use motley_sim::predictions::{LayersAhead, PredictionParams};
use motley_sim::setup::dense_cost;
use motley_sim::world::World;
use motley_trace::{ExpertKey, Trace};

use super::assumed::{Assumptions, GPU_SPARE, RAM_SPARE};
use super::lanes::{TokenBound, TokenWork, most_hits};
use super::models::Model;
use crate::compared::routing::Stream;
use crate::error::{ReproduceError, lacks};

/// Tokens of a batch from which llama.cpp copies experts of CPU layers to the GPU.
const OFFLOAD_FROM_TOKENS: u32 = 32;

/// Who schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// llama.cpp: experts of whole layers on the GPU or the CPU. Without room in RAM: its mapping
    /// of the file, taken as LRU over whole experts.
    StaticSplit,
    /// kTransformers: the most used experts on the GPU, the others computed on the CPU.
    Pinned,
    /// The same in prefill as HybriMoE describes it: the others loaded.
    PinnedLoading,
    /// Ours: H1 and the default cache policy, with this prefetcher.
    Ours(PrefetchChoice),
    /// The same with parts of experts over the idle link (G2).
    Parts(PrefetchChoice),
    /// No system: ours if the GPU held every expert. What scheduling cannot pass.
    AllNear,
}

impl System {
    /// What ours chooses from.
    pub fn choices(parts: bool) -> impl Iterator<Item = Self> {
        use PrefetchChoice::{NextLayer, NextLayerRefill, None, Refill};
        let all = [NextLayerRefill, NextLayer, Refill, None].into_iter();
        all.map(move |prefetch| if parts { Self::Parts(prefetch) } else { Self::Ours(prefetch) })
    }

    /// Its prefetcher.
    pub fn prefetch(self) -> PrefetchChoice {
        match self {
            Self::Ours(prefetch) | Self::Parts(prefetch) => prefetch,
            _ => PrefetchChoice::None,
        }
    }

    fn strategy(self, regime: Regime) -> Box<dyn Strategy> {
        match (regime, self) {
            (Regime::BeyondRam | Regime::OneMemory, _) => Box::new(OnDemand::default()),
            (_, Self::StaticSplit) => Box::new(LayerSplit::offloading(OFFLOAD_FROM_TOKENS)),
            (_, Self::Pinned) => Box::new(LayerSplit::default()),
            (_, Self::PinnedLoading) => Box::new(Pinned::default()),
            (_, Self::Ours(_) | Self::AllNear) => Box::new(TimelineStrategy::default()),
            (_, Self::Parts(_)) => Box::new(PartsStrategy::default()),
        }
    }
}

/// One machine with one model.
pub struct Pair<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The model.
    pub model: &'a Model,
    /// Its routing.
    pub stream: &'a Stream,
    /// What is left open.
    pub open: Assumptions,
}

impl Pair<'_> {
    /// Where the experts are: on the GPU if all fit there beside everything else, in RAM if they
    /// fit there (those on the GPU keep their copy), else on disk.
    pub fn regime(&self) -> Regime {
        let shape = self.model.shape();
        let all = shape.routed_bytes() + shape.dense_bytes();
        if all <= self.room(DeviceKind::Gpu) {
            Regime::OneMemory
        } else if shape.routed_bytes() <= self.room(DeviceKind::Cpu) {
            Regime::Hybrid
        } else {
            Regime::BeyondRam
        }
    }

    /// Experts of each layer that the fast tier holds.
    pub fn slots_per_layer(&self) -> u32 {
        let shape = self.model.shape();
        let room = match self.regime() {
            Regime::BeyondRam => self.room(DeviceKind::Cpu),
            _ => self.room(DeviceKind::Gpu).saturating_sub(shape.dense_bytes()),
        };
        let slots = room / shape.expert.bytes / u64::from(shape.layers);
        (slots as u32).min(u32::from(shape.experts))
    }

    /// Drives one system through `trace`; `None` where it cannot run.
    pub fn run(&self, system: System, trace: &Trace) -> Result<Option<Outcome>, ReproduceError> {
        let regime = self.regime();
        let pinned = matches!(system, System::Pinned | System::PinnedLoading);
        if pinned && regime == Regime::BeyondRam {
            return Ok(None);
        }
        let costs = self.costs(regime)?;
        let grid = trace.header.grid();
        let per_layer = match system {
            System::AllNear => u32::from(grid.experts),
            _ => self.slots_per_layer(),
        };
        let slots = per_layer * u32::from(grid.layers);
        let splits_layers = system == System::StaticSplit && regime == Regime::Hybrid;
        let capacity = if splits_layers {
            Capacity::Global { slots }
        } else {
            Capacity::PerLayer { slots: vec![per_layer; grid.layers.into()] }
        };
        let policy = match system {
            System::Ours(_) | System::Parts(_) => PolicyChoice::default(),
            _ => PolicyChoice::Lru,
        };
        let prefetch = system.prefetch();
        let mut scheduler = Scheduler::new(SchedulerParts {
            costs: costs.clone(),
            tiers: vec![TierParts {
                cache: ExpertCache::new(grid, capacity, policy.build(&trace.header)),
                prefetcher: prefetch.build(grid),
                limits: SchedulerLimits::default(),
            }],
            strategy: system.strategy(regime),
        });
        let residents: Vec<ExpertKey> = if splits_layers {
            LayerSplit::residents(grid, slots)
        } else {
            Pinned::residents(grid, &self.stream.uses, per_layer)
        };
        scheduler.preload(0, &residents);
        let layers = LayersAhead::asked(|phase| prefetch.layers_ahead_in(phase));
        let accuracy = self.open.prediction_accuracy;
        let predictions = PredictionParams { layers, accuracy, seed: 5 };
        let dense = dense_cost(self.device(DeviceKind::Gpu)?, &self.model.shape());
        let mut world = World::new(costs, dense).with_predictions(predictions);
        Ok(Some(drive(&mut trace.source(), &mut scheduler, &mut world, None)?))
    }

    /// The least a decoded token can take with the measured tokens' routing.
    pub(super) fn token_bound(&self) -> Result<TokenBound, ReproduceError> {
        let shape = self.model.shape();
        let slots = self.slots_per_layer() * u32::from(shape.layers);
        let most_hits = most_hits(&self.stream.decode, slots, self.stream.measured_from)?;
        let experts = f64::from(shape.layers) * f64::from(self.stream.decode.header.k);
        let dense = dense_cost(self.device(DeviceKind::Gpu)?, &shape);
        let layers_us = f64::from(shape.layers) * (dense.layer_us + dense.layer_per_token_us);
        let work = TokenWork {
            dense: Nanos::from_us(layers_us + dense.pass_us),
            experts,
            misses: experts * (1.0 - most_hits),
            costs: self.costs(self.regime())?,
        };
        Ok(TokenBound { token_ms: 1e-3 * work.bound_us(), most_hits })
    }

    /// What everything costs. Rates of links are taken as described: what a link reaches.
    fn costs(&self, regime: Regime) -> Result<Costs, ReproduceError> {
        let shape = self.model.shape().expert;
        let (gpu, cpu) = (self.device(DeviceKind::Gpu)?, self.device(DeviceKind::Cpu)?);
        let on_cpu =
            Efficiency { compute: self.open.cpu_arithmetic, bandwidth: self.open.cpu_share };
        let at_home = ComputeCost::derive(cpu, &shape, on_cpu);
        let on_gpu = ComputeCost {
            launch_us: self.open.gpu_start_us,
            ..ComputeCost::derive(gpu, &shape, Efficiency::DEFAULT)
        };
        let link = |from: &Device, to: &Device, share: f64| {
            let found = self.machine.link(&from.name, &to.name);
            let found = lacks(self.machine, found, "link between its memories")?;
            Ok::<_, ReproduceError>(TransferCost::new(
                found.latency_us,
                found.bandwidth_gb_per_s * share,
            ))
        };
        let pcie = link(cpu, gpu, self.open.link_share)?;
        let (fast, home, link) = match regime {
            Regime::BeyondRam => (at_home, None, link(self.device(DeviceKind::Disk)?, cpu, 1.0)?),
            Regime::Hybrid | Regime::NearData => {
                let home = Homes {
                    units: 1,
                    layout: Layout::Whole,
                    unit: at_home,
                    // Hidden rows to the CPU and sums back, in 32 bits.
                    entry_us: 2.0 * pcie.latency_us,
                    entry_per_token_us: 2.0 * pcie.per_byte_us * shape.row_bytes(4) as f64,
                };
                (on_gpu, Some(home), pcie)
            }
            Regime::OneMemory => (on_gpu, None, pcie),
        };
        Ok(Costs::one_tier(fast, link, home, shape.bytes))
    }

    fn room(&self, kind: DeviceKind) -> u64 {
        let spare = if kind == DeviceKind::Gpu { GPU_SPARE } else { RAM_SPARE };
        let memory = self.machine.first(kind).map_or(0, Device::total_memory_bytes);
        (memory as f64 * (1.0 - spare)) as u64
    }

    fn device(&self, kind: DeviceKind) -> Result<&Device, ReproduceError> {
        let item = match kind {
            DeviceKind::Gpu => "gpu",
            DeviceKind::Cpu => "cpu",
            _ => "disk",
        };
        lacks(self.machine, self.machine.first(kind), item)
    }
}
