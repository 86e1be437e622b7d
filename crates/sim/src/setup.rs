//! From a machine, a model and names to something that can be driven: the regime, its costs, the
//! slots that fit, the scheduler and the world. Puts together; runs nothing.

use motley_cost::{Efficiency, Nanos};
use motley_machine::{Device, DeviceKind, Machine};
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice};
use motley_sched::prefetch::{PrefetchChoice, PrefillCounted};
use motley_sched::regime::{self, Regime, RegimeError};
use motley_sched::spans::Spans;
use motley_sched::strategy::{LayerSplit, StrategyChoice};
use motley_sched::{Costs, Limits, Scheduler, SchedulerParts};
use motley_trace::{ExpertGrid, ExpertKey, Phase, Trace, Visit};

use crate::drive::{DriveError, drive};
use crate::faults::Faults;
use crate::outcome::Outcome;
use crate::predictions::PredictionParams;
use crate::shape::{Dense, ModelShape};
use crate::world::{DenseCost, World};

/// Part of every memory left to caches of keys and values, buffers and the system.
pub const SPARE: f64 = 0.2;
/// Launches of dense work per layer: attention, and what follows it.
const DENSE_LAUNCHES: f64 = 2.0;
/// Layers looked ahead by what uses predictions (H2).
const PREDICTED_LAYERS: u16 = 3;

/// How much of the fast tier holds experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheSize {
    /// What the memory holds beside dense weights and [`SPARE`].
    Fitting,
    /// A share (0 to 1) of all experts.
    Share(f64),
    /// This many experts over all layers.
    Slots(u32),
}

/// What is to be simulated. `None` leaves a choice to the regime.
#[derive(Debug, Clone, Copy)]
pub struct Choices<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The model.
    pub model: &'a ModelShape,
    /// Who computes.
    pub strategy: Option<StrategyChoice>,
    /// What stays.
    pub policy: PolicyChoice,
    /// What is fetched early.
    pub prefetch: Option<PrefetchChoice>,
    /// How much stays.
    pub cache: CacheSize,
    /// Chance that a choice one layer ahead is predicted.
    pub prediction_accuracy: f64,
    /// What goes wrong, and its seed.
    pub faults: Option<(Faults, u64)>,
    /// Seed of wrong predictions.
    pub seed: u64,
}

/// A simulation put together.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Where experts live.
    pub regime: Regime,
    /// Device that computes experts of the fast tier.
    pub fast: String,
    /// Device that computes experts where they live, if one does.
    pub home: Option<String>,
    /// Device the experts come from.
    pub slow: String,
    /// Device of everything that is not a routed expert.
    pub dense: String,
    /// Who computes.
    pub strategy: StrategyChoice,
    /// What stays.
    pub policy: PolicyChoice,
    /// What is fetched early.
    pub prefetch: PrefetchChoice,
    /// Slots of each layer.
    pub slots_per_layer: u32,
    costs: Costs,
    dense_cost: DenseCost,
    predictions: PredictionParams,
    faults: Option<(Faults, u64)>,
}

impl Setup {
    /// Decides what is open and derives every cost.
    pub fn new(choices: &Choices<'_>) -> Result<Self, RegimeError> {
        let Choices { machine, model, .. } = *choices;
        let regime = chosen_regime(choices);
        let costs = regime::costs(regime, machine, &model.expert, Efficiency::DEFAULT)?;
        let device = |kind| machine.first(kind);
        let name = |kind| device(kind).map_or(String::new(), |found: &Device| found.name.clone());
        let gpu_or_cpu =
            if device(DeviceKind::Gpu).is_some() { DeviceKind::Gpu } else { DeviceKind::Cpu };
        let (fast, home, slow) = match regime {
            Regime::Hybrid => (DeviceKind::Gpu, Some(DeviceKind::Cpu), DeviceKind::Cpu),
            Regime::NearData => (DeviceKind::Gpu, Some(DeviceKind::NearData), DeviceKind::NearData),
            Regime::BeyondRam => (DeviceKind::Cpu, None, DeviceKind::Disk),
            Regime::OneMemory => (gpu_or_cpu, None, gpu_or_cpu),
        };
        let prefetch = choices.prefetch.unwrap_or(match regime {
            Regime::Hybrid | Regime::BeyondRam => PrefetchChoice::NextLayerRefill,
            Regime::NearData => PrefetchChoice::PrefillCounted,
            Regime::OneMemory => PrefetchChoice::None,
        });
        let layers = if prefetch.uses_predictions() { PREDICTED_LAYERS } else { 0 };
        Ok(Self {
            regime,
            fast: name(fast),
            home: home.map(name),
            slow: name(slow),
            dense: name(gpu_or_cpu),
            strategy: choices.strategy.unwrap_or(match regime {
                Regime::Hybrid => StrategyChoice::Timelines,
                Regime::NearData => StrategyChoice::Balanced,
                Regime::BeyondRam | Regime::OneMemory => StrategyChoice::OnDemand,
            }),
            policy: choices.policy,
            prefetch,
            slots_per_layer: slots_per_layer(choices, regime, fast),
            costs,
            dense_cost: device(gpu_or_cpu)
                .map_or(DenseCost::default(), |unit| dense_cost(unit, model)),
            predictions: PredictionParams {
                layers,
                accuracy: choices.prediction_accuracy,
                seed: choices.seed,
            },
            faults: choices.faults,
        })
    }

    /// Drives the scheduler through `trace`. The cache begins with the experts most used in the
    /// prompt (without one, in the first half); under a layer split with whole layers.
    pub fn run(&self, trace: &Trace, spans: Option<&mut Spans>) -> Result<Outcome, DriveError> {
        let grid = trace.header.grid();
        let slots = self.slots_per_layer * u32::from(grid.layers);
        let capacity = match self.strategy {
            StrategyChoice::LayerSplit => Capacity::Global { slots },
            _ => Capacity::PerLayer { slots: vec![self.slots_per_layer; grid.layers.into()] },
        };
        let mut scheduler = Scheduler::new(SchedulerParts {
            costs: self.costs,
            cache: ExpertCache::new(grid, capacity, self.policy.build(&trace.header)),
            strategy: self.strategy.build(),
            prefetcher: self.prefetch.build(grid),
            limits: Limits::default(),
        });
        scheduler.preload(&match self.strategy {
            StrategyChoice::LayerSplit => LayerSplit::residents(grid, slots),
            _ => most_used(trace, grid),
        });
        let mut world = World::new(self.costs, self.dense_cost).with_predictions(self.predictions);
        if let Some((faults, seed)) = self.faults {
            world = world.with_faults(faults, seed);
        }
        drive(&mut trace.source(), &mut scheduler, &mut world, spans)
    }

    /// One expert over the link.
    pub fn load_time(&self) -> Nanos {
        self.costs.load_time(motley_sched::Share::WHOLE)
    }
}

/// The regime by size; a cache asked for by hand needs a tier to miss into.
fn chosen_regime(choices: &Choices<'_>) -> Regime {
    let Choices { machine, model, .. } = *choices;
    let regime = regime::of(machine, model.routed_bytes() + model.dense_bytes(), SPARE);
    if regime != Regime::OneMemory || choices.cache == CacheSize::Fitting {
        return regime;
    }
    let works = |regime: &Regime| {
        regime::costs(*regime, machine, &model.expert, Efficiency::DEFAULT).is_ok()
    };
    [Regime::NearData, Regime::Hybrid, Regime::BeyondRam].into_iter().find(works).unwrap_or(regime)
}

fn slots_per_layer(choices: &Choices<'_>, regime: Regime, fast: DeviceKind) -> u32 {
    let Choices { machine, model, .. } = *choices;
    let (layers, experts) = (u32::from(model.layers), u32::from(model.experts));
    let slots = match choices.cache {
        CacheSize::Share(share) => (f64::from(experts) * share.clamp(0.0, 1.0)).round() as u32,
        CacheSize::Slots(slots) => slots / layers,
        CacheSize::Fitting if regime == Regime::OneMemory => experts,
        CacheSize::Fitting => {
            let memory = machine.first(fast).map_or(0, Device::total_memory_bytes);
            let room = (memory as f64 * (1.0 - SPARE)) as u64;
            let room = room.saturating_sub(model.dense_bytes());
            (room / model.expert.bytes.max(1) / u64::from(layers)) as u32
        }
    };
    slots.min(experts)
}

/// Weights over bandwidth or arithmetic, with the default efficiency; attention over the context
/// is not counted.
pub fn dense_cost(unit: &Device, model: &ModelShape) -> DenseCost {
    let Efficiency { compute, bandwidth } = Efficiency::DEFAULT;
    let read_us = |dense: Dense| dense.bytes / (unit.bandwidth_gb_per_s * 1e3 * bandwidth);
    let flop_per_us = unit.compute_tflops * 1e6 * compute;
    DenseCost {
        layer_us: read_us(model.dense_layer) + DENSE_LAUNCHES * unit.launch_us,
        layer_per_token_us: 2.0 * model.dense_layer.weights / flop_per_us,
        pass_us: read_us(model.ends) + unit.launch_us,
    }
}

/// Rank by rank over the layers, most used first.
fn most_used(trace: &Trace, grid: ExpertGrid) -> Vec<ExpertKey> {
    let mut counted = PrefillCounted::new(grid);
    let mut buffer = motley_sched::cache::RoutedBuffer::new(&trace.header);
    let middle = trace.middle_pass();
    let has_prompt = trace.visits.iter().any(|visit| visit.phase == Phase::Prefill);
    let early = |visit: &&Visit| match has_prompt {
        true => visit.phase == Phase::Prefill,
        false => visit.pass < middle,
    };
    trace.visits.iter().filter(early).for_each(|visit| counted.count(&buffer.fill(visit)));
    counted.order()
}
