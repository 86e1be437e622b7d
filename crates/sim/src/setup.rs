//! From a machine, a model and names to something that can be driven: the decision a run would
//! execute there, the costs that follow from the description, the scheduler and the world. Puts
//! together; runs nothing.

use motley_cost::{Efficiency, Nanos};
use motley_machine::{Device, DeviceKind, Machine};
use motley_plan::decide::facts::Described;
use motley_plan::headroom::device_room;
use motley_plan::worker::TooLittleForWorker;
use motley_plan::{Asked, DecideError, Decision, Placement, decide};
use motley_sched::cache::{Capacity, PolicyChoice, RoutedBuffer};
use motley_sched::prefetch::{PrefetchChoice, PrefillCounted};
use motley_sched::regime::{self, Regime, RegimeError};
use motley_sched::shares::{DeviceSlots, LayerSlots, Shares};
use motley_sched::spans::Spans;
use motley_sched::strategy::StrategyChoice;
use motley_sched::{
    ByMemory, Costs, Memories, NotThere, Rules, SchedulerLimits, SchedulerSetup, SkipCold,
    TierSetup,
};
use motley_trace::{ExpertKey, Phase, Trace, TraceHeader, Visit};

use crate::drive::{DriveError, drive};
use crate::faults::Faults;
use crate::hosts::Hosts;
use crate::outcome::Outcome;
use crate::predictions::{LayersAhead, PredictionParams};
use crate::shape::{Dense, ModelShape};
use crate::world::{DenseCost, World};

/// Launches of dense work per layer: attention, and what follows it.
const DENSE_LAUNCHES: f64 = 2.0;

/// Chance that a choice one layer ahead is predicted, when nobody says.
pub const DEFAULT_PREDICTION: f64 = 0.8;

/// How much of the fast tier holds experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheSize {
    /// What a run would give them.
    Fitting,
    /// A share (0 to 1) of all experts.
    Share(f64),
    /// This many experts over all layers.
    Slots(u32),
}

/// What is to be simulated. `None` leaves a choice to the decision.
#[derive(Debug, Clone, Copy)]
pub struct Choices<'a> {
    pub machine: &'a Machine,
    pub model: &'a ModelShape,
    pub strategy: Option<StrategyChoice>,
    /// What stays.
    pub policy: Option<ByMemory<PolicyChoice>>,
    /// What is fetched early.
    pub prefetch: Option<ByMemory<PrefetchChoice>>,
    /// How much stays.
    pub cache: CacheSize,
    /// Chance that a choice one layer ahead is predicted.
    pub prediction_accuracy: f64,
    /// What goes wrong, and its seed.
    pub faults: Option<(Faults, u64)>,
    /// Seed of wrong predictions.
    pub seed: u64,
}

/// Why something cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    #[error(transparent)]
    Decide(#[from] DecideError),
    #[error(transparent)]
    Regime(#[from] RegimeError),
    /// A rule for a memory that nothing is brought to.
    #[error(transparent)]
    NotThere(#[from] NotThere),
    /// Another machine has no room for experts.
    #[error(transparent)]
    Worker(#[from] TooLittleForWorker),
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
    /// Who decides, as a run on that machine would build it.
    pub scheduler: SchedulerSetup,
    /// What things really cost there.
    costs: Costs,
    dense_cost: DenseCost,
    predictions: PredictionParams,
    faults: Option<(Faults, u64)>,
}

impl Setup {
    /// Takes the decision `motley run` would, and derives every cost.
    pub fn new(choices: &Choices<'_>) -> Result<Self, SetupError> {
        Self::of(choices, &decision(choices.machine, choices.model)?)
    }

    /// The same, leaving out weak experts that would have to be read from disk.
    pub fn skipping(mut self, skip_cold: Option<SkipCold>) -> Result<Self, SetupError> {
        if skip_cold.is_some() && self.regime != Regime::BeyondRam {
            return Err(DecideError::SkipNothing.into());
        }
        self.scheduler.rules.skip_cold = skip_cold;
        Ok(self)
    }

    /// Executes `decision`, and derives every cost.
    pub fn of(choices: &Choices<'_>, decision: &Decision) -> Result<Self, SetupError> {
        let Choices { machine, model, .. } = *choices;
        let regime = chosen_regime(choices, decision.regime());
        let costs = regime::costs(regime, machine, &model.expert, Efficiency::DEFAULT)?;
        let name =
            |kind| machine.first(kind).map_or(String::new(), |found: &Device| found.name.clone());
        let has_gpu = machine.first(DeviceKind::Gpu).is_some();
        let gpu_or_cpu = if has_gpu { DeviceKind::Gpu } else { DeviceKind::Cpu };
        let (fast, home, slow) = match regime {
            Regime::Hybrid => (DeviceKind::Gpu, Some(DeviceKind::Cpu), DeviceKind::Cpu),
            Regime::NearData => (DeviceKind::Gpu, Some(DeviceKind::NearData), DeviceKind::NearData),
            Regime::BeyondRam => (DeviceKind::Cpu, None, DeviceKind::Disk),
            Regime::OneMemory => (gpu_or_cpu, None, gpu_or_cpu),
        };
        let dense = match regime == decision.regime() && !decision.placement.dense_on_gpu {
            true => DeviceKind::Cpu,
            false => gpu_or_cpu,
        };
        let scheduler = scheduler_setup(choices, decision, regime, costs.clone())?;
        // Where devices share experts that are on disk, what the scheduler knows is all there is.
        let costs = if scheduler.tiers.len() > 1 { scheduler.costs.clone() } else { costs };
        Ok(Self {
            regime,
            fast: name(fast),
            home: home.map(name),
            slow: name(slow),
            dense: name(dense),
            scheduler,
            costs,
            dense_cost: machine
                .first(dense)
                .map_or(DenseCost::default(), |unit| dense_cost(unit, model)),
            predictions: PredictionParams {
                accuracy: choices.prediction_accuracy,
                seed: choices.seed,
                ..PredictionParams::default()
            },
            faults: choices.faults,
        })
    }

    /// The same under other rules.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { scheduler: self.scheduler.with_rules(rules), ..self }
    }

    /// Drives the scheduler through `trace`. The fast memory begins empty, as a run's does whose
    /// model has no profile; pinned experts are the most used of the prompt (without one, of the
    /// first half), and a split by layers begins with whole layers.
    pub fn run(&self, trace: &Trace, spans: Option<&mut Spans>) -> Result<Outcome, DriveError> {
        let mut setup = self.scheduler.clone();
        if setup.rules.decode == StrategyChoice::Pinned {
            setup.most_used = most_used(trace);
        }
        self.run_from(trace, &setup.residents(&trace.header), None, spans)
    }

    /// The same from `residents` of each tier on, with other machines beside it where there are any.
    pub fn run_from(
        &self,
        trace: &Trace,
        residents: &[Vec<ExpertKey>],
        hosts: Option<Hosts>,
        spans: Option<&mut Spans>,
    ) -> Result<Outcome, DriveError> {
        let setup = &self.scheduler;
        let mut scheduler = setup.scheduler(&trace.header);
        for (tier, keys) in (0..).zip(residents) {
            scheduler.preload(tier, keys);
        }
        let layers = LayersAhead::asked(|phase| setup.rules.layers_ahead_in(phase));
        let predictions = PredictionParams { layers, ..self.predictions };
        let mut world =
            World::new(self.costs.clone(), self.dense_cost).with_predictions(predictions);
        if let Some((faults, seed)) = self.faults {
            world = world.with_faults(faults, seed);
        }
        if let Some(hosts) = hosts {
            world = world.with_hosts(hosts);
        }
        drive(&mut trace.source(), &mut scheduler, &mut world, spans)
    }

    /// One expert over the link.
    pub fn load_time(&self) -> Nanos {
        self.costs.load_time(0, motley_sched::Share::WHOLE)
    }
}

/// What `motley run` would decide for `model` on `machine`, nothing asked.
pub fn decision(machine: &Machine, model: &ModelShape) -> Result<Decision, DecideError> {
    decide(&Described::of(machine).facts(&model.needs()), &Asked::default())
}

/// The decision's regime; where memory modules compute, theirs, which no engine runs. A cache
/// asked for by hand needs a tier to miss into.
fn chosen_regime(choices: &Choices<'_>, decided: Regime) -> Regime {
    let Choices { machine, model, .. } = *choices;
    let works = |regime: &Regime| {
        regime::costs(*regime, machine, &model.expert, Efficiency::DEFAULT).is_ok()
    };
    let near = machine.first(DeviceKind::NearData).map_or(0, Device::total_memory_bytes);
    if decided != Regime::OneMemory && model.routed_bytes() <= near && works(&Regime::NearData) {
        return Regime::NearData;
    }
    if decided != Regime::OneMemory || choices.cache == CacheSize::Fitting {
        return decided;
    }
    let tiers = [Regime::NearData, Regime::Hybrid, Regime::BeyondRam];
    tiers.into_iter().find(works).unwrap_or(decided)
}

/// What the engine would build from `decision`, with what was asked for in its place.
fn scheduler_setup(
    choices: &Choices<'_>,
    decision: &Decision,
    regime: Regime,
    costs: Costs,
) -> Result<SchedulerSetup, NotThere> {
    let decided = Decision {
        rules: rules(choices, decision, regime)?,
        placement: Placement { regime, ..decision.placement.clone() },
        ..decision.clone()
    };
    let mut setup = setup_of(&decided, choices.model, costs);
    setup.parts |= choices.strategy.is_some();
    if regime == Regime::NearData {
        setup.tiers[0].capacity = Capacity::Global { slots: beside_modules(choices) };
    }
    if choices.cache != CacheSize::Fitting {
        setup.tiers[0].capacity = asked_capacity(choices);
    }
    Ok(setup)
}

/// Who decides in a run of `decision`: the engine builds the same from the same decision. Where
/// the decision has no costs, an expert's are `costs`.
pub fn setup_of(decision: &Decision, model: &ModelShape, costs: Costs) -> SchedulerSetup {
    let (regime, rules) = (decision.regime(), decision.rules);
    match regime {
        Regime::BeyondRam => {
            let slots = decision.streamed_slots().unwrap_or(decision.budget.experts);
            let setup = SchedulerSetup::beyond_ram(rules, slots, costs);
            match decision.expert_costs.clone() {
                Some(costs) => {
                    setup.with_devices(device_shares(decision, model), costs, Vec::new())
                }
                None => setup,
            }
        }
        Regime::Hybrid => {
            let known = decision.expert_costs.clone().unwrap_or(costs);
            SchedulerSetup::beside_home(rules, device_shares(decision, model), known, Vec::new())
        }
        Regime::NearData | Regime::OneMemory => SchedulerSetup {
            costs,
            tiers: vec![TierSetup {
                capacity: Capacity::Global { slots: decision.budget.experts },
                limits: SchedulerLimits::default(),
            }],
            rules,
            parts: regime == Regime::NearData,
            most_used: Vec::new(),
        },
    }
}

fn rules(choices: &Choices<'_>, decision: &Decision, regime: Regime) -> Result<Rules, NotThere> {
    let defaults = match regime == decision.regime() {
        true => decision.rules,
        false => Rules::default_for(regime),
    };
    let ram = matches!(regime, Regime::BeyondRam | Regime::OneMemory);
    let shared = regime == Regime::BeyondRam && decision.expert_costs.is_some();
    let (policy, prefetch) =
        (choices.policy.unwrap_or_default(), choices.prefetch.unwrap_or_default());
    let rules = defaults.with(&policy, &prefetch, Memories { ram, devices: !ram || shared })?;
    Ok(Rules {
        prefill: choices.strategy.unwrap_or(rules.prefill),
        decode: choices.strategy.unwrap_or(rules.decode),
        ..rules
    })
}

/// The slots of each device that shares experts.
fn device_shares(decision: &Decision, model: &ModelShape) -> Vec<Shares> {
    let holdings = &decision.placement.holdings;
    let devices = &holdings[..holdings.len().saturating_sub(1)];
    devices.iter().map(|gpu| Shares::of(&device_slots(model, gpu.expert_slots))).collect()
}

/// Slots of a device that fit every layer.
fn device_slots(model: &ModelShape, slots: u32) -> DeviceSlots {
    let (layers, experts) = (u32::from(model.layers), u32::from(model.experts));
    let layer = LayerSlots { slots, slot_bytes: model.expert.bytes };
    DeviceSlots {
        all: slots,
        most: u32::MAX,
        experts,
        all_experts: layers * experts,
        layers: vec![layer; layers as usize],
    }
}

/// Experts a GPU holds beside dense weights, the others in memory modules.
fn beside_modules(choices: &Choices<'_>) -> u32 {
    let Choices { machine, model, .. } = *choices;
    let all = u32::from(model.layers) * u32::from(model.experts);
    let memory = machine.first(DeviceKind::Gpu).map_or(0, Device::total_memory_bytes);
    let room = device_room(memory).saturating_sub(model.dense_bytes());
    u32::try_from(room / model.expert.bytes.max(1)).unwrap_or(u32::MAX).min(all)
}

/// A cache of the size that was asked for, the same for every layer.
fn asked_capacity(choices: &Choices<'_>) -> Capacity {
    let (layers, experts) = (u32::from(choices.model.layers), u32::from(choices.model.experts));
    let each = match choices.cache {
        CacheSize::Share(share) => (f64::from(experts) * share.clamp(0.0, 1.0)).round() as u32,
        CacheSize::Slots(slots) => slots / layers,
        CacheSize::Fitting => experts,
    };
    let each = each.min(experts);
    match choices.strategy {
        Some(StrategyChoice::LayerSplit) => Capacity::Global { slots: each * layers },
        _ => Capacity::PerLayer { slots: vec![each; layers as usize] },
    }
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

/// The most used of the prompt; without one, of the first half.
fn most_used(trace: &Trace) -> Vec<ExpertKey> {
    let middle = trace.middle_pass();
    let has_prompt = trace.visits.iter().any(|visit| visit.phase == Phase::Prefill);
    let early = |visit: &&Visit| match has_prompt {
        true => visit.phase == Phase::Prefill,
        false => visit.pass < middle,
    };
    counted(&trace.header, trace.visits.iter().filter(early))
}

/// Rank by rank over the layers, most used first.
pub(crate) fn counted<'a>(
    header: &TraceHeader,
    visits: impl Iterator<Item = &'a Visit>,
) -> Vec<ExpertKey> {
    let mut counted = PrefillCounted::new(header.grid());
    let mut buffer = RoutedBuffer::new(header);
    visits.for_each(|visit| counted.count(&buffer.fill(visit)));
    counted.order()
}
