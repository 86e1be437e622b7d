//! The plan: every setting of a run and what it should give. Chooses by predicting; measures
//! nothing.

use motley_cost::PowerHeuristic;
use motley_machine::{DeviceKind, Machine, Regime};
use motley_model::ModelSpec;
use motley_profile::Profile;
use motley_trace::Phase;
use serde::{Deserialize, Serialize};

use crate::budget::{Budget, SessionShape, TooLittleMemory};
use crate::calibration::Calibration;
use crate::cores::{Aecs, CorePool, CoreSet, Freedom, Measurement, Objective, carry_out};
use crate::demand::Demand;
use crate::placement::{Placement, place};
use crate::predict::{Case, Prediction, decode, prefill};
use crate::tiers::{GroupRule, LayerTiers, Sharing, TierRule, block_tokens, group, share_experts};

/// Version of the format this crate writes and reads.
pub const FORMAT_VERSION: u32 = 1;
/// Chunks that are compared (N7), the usual one first; the last two are for little memory.
pub const CHUNKS: [u32; 5] = [512, 256, 1024, 128, 64];
/// Length of the answer for which chunks are compared.
const ANSWER_TOKENS: f64 = 256.0;
/// How much faster another chunk than the usual one must be.
const CHUNK_GAIN: f64 = 1.03;
/// Under the goal `memory`, speed that is kept of what all memory would give.
const MEMORY_GOAL_SPEED: f64 = 0.9;
/// Budgets compared under the goal `memory`.
const MEMORY_STEPS: u64 = 64;

/// What matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Tokens per second.
    #[default]
    Speed,
    /// Joules per token, at most 8 % slower (A1).
    Energy,
    /// Bytes, at most 10 % slower.
    Memory,
}

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The model.
    pub spec: &'a ModelSpec,
    /// The machine.
    pub machine: &'a Machine,
    /// Its costs.
    pub calibration: &'a Calibration,
    /// The model's routing, where known.
    pub profile: Option<&'a Profile>,
    /// What matters.
    pub goal: Goal,
    /// RAM that may be used.
    pub memory_bytes: u64,
    /// KV cache length.
    pub context_tokens: u32,
    /// Chunk, if the user chose one.
    pub chunk_tokens: Option<u32>,
    /// Prompt for which prefill is predicted.
    pub prompt_tokens: u32,
    /// What may be said about threads.
    pub freedom: Freedom,
}

/// Everything a run needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Format version, [`FORMAT_VERSION`].
    #[serde(rename = "motley_plan")]
    pub version: u32,
    /// The model, for people.
    pub model: String,
    /// The machine, for people.
    pub machine: String,
    /// Where the costs come from.
    pub costs: String,
    /// Whether they were measured.
    pub costs_measured: bool,
    /// What mattered.
    pub goal: Goal,
    /// RAM that will be used at most.
    pub memory_bytes: u64,
    /// How a budget divides.
    pub budget: Budget,
    /// What goes where.
    pub placement: Placement,
    /// Which experts stay: a name `--policy` takes.
    pub cache_policy: String,
    /// KV cache length.
    pub context_tokens: u32,
    /// Prefill chunk (N7).
    pub chunk_tokens: u32,
    /// Block of one expert's tokens on the device that computes experts (W4).
    pub block_tokens: u32,
    /// How equal units share experts, where there are several (W6).
    pub sharing: Option<Sharing>,
    /// Static shapes for a device that needs them.
    pub tiers: Option<TierPlan>,
    /// Core sets, where cores are described.
    pub cores: Option<CorePlan>,
    /// Expected prefill.
    pub prefill: Prediction,
    /// Expected decode.
    pub decode: Prediction,
    /// What was taken for granted.
    pub assumed: Vec<String>,
}

/// Cores of both phases (A5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorePlan {
    /// For prefill.
    pub prefill: CoreSet,
    /// For decode.
    pub decode: CoreSet,
    /// `decode` in words.
    pub described: String,
}

/// Static shapes (N2, N4) of the layer with the most even and the most uneven routing alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierPlan {
    /// The device.
    pub device: String,
    /// Capacities of each visited layer, largest first.
    pub per_layer: Vec<Vec<u32>>,
    /// Experts in one graph.
    pub group_size: u32,
    /// Graphs of all layers.
    pub graphs: u32,
    /// Rows computed over rows expected, above 1 by padding.
    pub padding: f64,
}

impl Inputs<'_> {
    /// llama.cpp takes buffers on a device whole, so there room for all logits counts.
    fn shape(&self, chunk_tokens: u32) -> SessionShape {
        let beside = self.machine.first(DeviceKind::Gpu).is_some();
        let output_tokens = if beside { chunk_tokens } else { 1 };
        SessionShape { context_tokens: self.context_tokens, chunk_tokens, output_tokens }
    }
}

/// Makes the plan.
pub fn plan(inputs: &Inputs<'_>) -> Result<Plan, TooLittleMemory> {
    let memory_bytes = match inputs.goal {
        Goal::Memory => least_memory(inputs)?,
        Goal::Speed | Goal::Energy => inputs.memory_bytes,
    };
    let chunk_tokens = match inputs.chunk_tokens {
        Some(chunk) => chunk,
        None => best_chunk(inputs, memory_bytes)?,
    };
    let demand = Demand::of(inputs.spec);
    let tried = Attempt::new(inputs, memory_bytes, chunk_tokens)?;
    let cores = core_plan(inputs);
    let (prefill, decode) = tried.predict(inputs, &demand, cores.as_ref());
    let units = inputs.machine.first(DeviceKind::Gpu).map_or(1, |gpu| gpu.count);
    let unit = inputs.machine.device(&tried.placement.dense_on);
    let bits = demand.expert_type.bits_per_weight();
    Ok(Plan {
        version: FORMAT_VERSION,
        model: inputs.spec.name.clone().unwrap_or_else(|| inputs.spec.architecture.clone()),
        machine: inputs.machine.name.clone(),
        costs: inputs.calibration.source.clone(),
        costs_measured: inputs.calibration.measured,
        goal: inputs.goal,
        memory_bytes: tried.placement.parts.last().map_or(memory_bytes, |part| part.bytes()),
        budget: tried.budget,
        cache_policy: "blend".into(),
        context_tokens: inputs.context_tokens,
        chunk_tokens,
        block_tokens: unit.map_or(1, |unit| block_tokens(unit, bits)),
        sharing: (units > 1).then(|| share_experts(units, demand.experts, demand.expert_width)),
        tiers: tier_plan(inputs, &demand, chunk_tokens),
        cores,
        prefill,
        decode,
        assumed: assumed(inputs, &tried.placement),
        placement: tried.placement,
    })
}

/// A placement and what it divides.
struct Attempt {
    budget: Budget,
    placement: Placement,
    chunk_tokens: u32,
}

impl Attempt {
    fn new(
        inputs: &Inputs<'_>,
        memory_bytes: u64,
        chunk_tokens: u32,
    ) -> Result<Self, TooLittleMemory> {
        let budget = Budget::of(inputs.spec, inputs.shape(chunk_tokens));
        let placement = place(&budget, inputs.machine, memory_bytes)?;
        Ok(Self { budget, placement, chunk_tokens })
    }

    fn predict(
        &self,
        inputs: &Inputs<'_>,
        demand: &Demand,
        cores: Option<&CorePlan>,
    ) -> (Prediction, Prediction) {
        let case = Case {
            demand,
            calibration: inputs.calibration,
            placement: &self.placement,
            profile: inputs.profile,
            context_tokens: 0,
            busy_w: busy_w(inputs, &self.placement, cores),
        };
        let chunk = self.chunk_tokens.min(inputs.prompt_tokens.max(1));
        let after = Case { context_tokens: inputs.prompt_tokens, ..case };
        (prefill(&case, chunk), decode(&after))
    }
}

/// N7: the usual chunk, unless another is clearly faster for a prompt and its answer (a smaller
/// one leaves memory to experts) or only a smaller one fits.
fn best_chunk(inputs: &Inputs<'_>, memory_bytes: u64) -> Result<u32, TooLittleMemory> {
    let demand = Demand::of(inputs.spec);
    let mut best: Option<(u32, f64)> = None;
    let mut refused: Option<TooLittleMemory> = None;
    for chunk in CHUNKS {
        match Attempt::new(inputs, memory_bytes, chunk) {
            Ok(tried) => {
                let (prefill, decode) = tried.predict(inputs, &demand, None);
                let prompt_s = f64::from(inputs.prompt_tokens) / prefill.tokens_per_s;
                let speed = 1.0 / (prompt_s + ANSWER_TOKENS / decode.tokens_per_s);
                if best.is_none_or(|(_, fastest)| speed > fastest * CHUNK_GAIN) {
                    best = Some((chunk, speed));
                }
            }
            Err(error) if refused.is_none_or(|r| error.needed_bytes < r.needed_bytes) => {
                refused = Some(error);
            }
            Err(_) => {}
        }
    }
    match (best, refused) {
        (Some((chunk, _)), _) => Ok(chunk),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(CHUNKS[0]),
    }
}

/// The least memory that keeps most of the decode speed all of it would give.
fn least_memory(inputs: &Inputs<'_>) -> Result<u64, TooLittleMemory> {
    let demand = Demand::of(inputs.spec);
    let chunk = match inputs.chunk_tokens {
        Some(chunk) => chunk,
        None => best_chunk(inputs, inputs.memory_bytes)?,
    };
    let speed = |bytes: u64| {
        let tried = Attempt::new(inputs, bytes, chunk)?;
        Ok(tried.predict(inputs, &demand, None).1.tokens_per_s)
    };
    let enough = speed(inputs.memory_bytes)? * MEMORY_GOAL_SPEED;
    let least =
        Budget::of(inputs.spec, inputs.shape(chunk)).smallest_bytes().min(inputs.memory_bytes);
    let step = ((inputs.memory_bytes - least) / MEMORY_STEPS).max(1);
    let mut budgets = (0..MEMORY_STEPS).map(|at| least + at * step);
    let found = budgets.find(|bytes| speed(*bytes).is_ok_and(|speed| speed >= enough));
    Ok(found.unwrap_or(inputs.memory_bytes))
}

/// Before `tune` has measured: all big cores, or under the goal `energy` what the bandwidth of
/// fewer cores allows.
fn core_plan(inputs: &Inputs<'_>) -> Option<CorePlan> {
    let pool = CorePool::of(inputs.machine, inputs.freedom).ok()?;
    let all = pool.all_considered();
    let rates = &inputs.calibration.by_cores;
    let decode = if inputs.goal == Goal::Energy && !rates.is_empty() {
        let speed = |set: &CoreSet| {
            let fits = rates.iter().filter(|rate| rate.cores <= set.cores());
            let tokens_per_s = fits.map(|rate| rate.gb_per_s).fold(0.0, f64::max);
            Measurement { tokens_per_s, joules_per_token: None }
        };
        let mut search = Aecs::new(pool.clone(), inputs.machine.power, Objective::default());
        carry_out(&mut search, speed).map_or_else(|| all.clone(), |found| found.chosen)
    } else {
        all.clone()
    };
    let described = pool.describe(&decode);
    Some(CorePlan { prefill: all, decode, described })
}

/// Measured draw, else the machine's, else the heuristic where its coefficients are described.
fn busy_w(inputs: &Inputs<'_>, placement: &Placement, cores: Option<&CorePlan>) -> Option<f64> {
    let gpu = inputs.calibration.gpu.as_ref().filter(|_| placement.dense_on_gpu);
    let unit = gpu.unwrap_or(&inputs.calibration.cpu);
    let heuristic = || {
        let power = inputs.machine.power?;
        let set = cores?.decode.per_cluster.clone();
        Some(PowerHeuristic::new(&inputs.machine.clusters, Some(power)).watts(&set))
    };
    unit.busy_w.or_else(heuristic)
}

fn tier_plan(inputs: &Inputs<'_>, demand: &Demand, chunk_tokens: u32) -> Option<TierPlan> {
    let device = inputs.machine.first(DeviceKind::Npu)?;
    let profile = inputs.profile?;
    let rule = TierRule::new(chunk_tokens, demand.used);
    // Graphs of such devices hold 16-bit weights (N4).
    let groups = GroupRule::new((2.0 * demand.expert_weights) as u64);
    let mut found = TierPlan {
        device: device.name.clone(),
        per_layer: Vec::new(),
        group_size: groups.size() as u32,
        graphs: 0,
        padding: 0.0,
    };
    let mut rows = 0;
    for layer in profile.visited() {
        let counts = layer.best(Phase::Prefill);
        let tiers = LayerTiers::of(&counts, &rule);
        found.graphs += group(&counts, &tiers, &groups).len() as u32;
        rows += tiers.rows();
        found.per_layer.push(tiers.tiers);
    }
    let expected = f64::from(chunk_tokens * demand.used) * found.per_layer.len() as f64;
    found.padding = rows as f64 / expected.max(1.0);
    Some(found)
}

fn assumed(inputs: &Inputs<'_>, placement: &Placement) -> Vec<String> {
    let mut notes = Vec::new();
    if !inputs.calibration.measured {
        notes.push("costs are from a description; `motley calibrate` measures them".to_owned());
    }
    let known = inputs.profile.is_some_and(|profile| profile.header.reuse.is_known());
    if placement.regime != Regime::OneMemory && !known {
        let how = "hit rates are those of other models; `motley calibrate MODEL --text` tells";
        notes.push(how.to_owned());
    }
    if placement.regime == Regime::BeyondRam && inputs.calibration.disk.is_none() {
        notes.push("no disk is described: 1 GB/s is taken".to_owned());
    }
    if inputs.goal == Goal::Energy && inputs.calibration.by_cores.is_empty() {
        notes.push("`motley tune` measures which cores decode cheapest".to_owned());
    }
    if inputs.profile.is_none() && inputs.machine.first(DeviceKind::Npu).is_some() {
        notes.push("an NPU is there, but tiers need a routing profile".to_owned());
    }
    notes
}
