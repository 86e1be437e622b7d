//! One run of a model on the CPU or beside a GPU: tokens, logits and counts; and how far two of
//! them are apart.

use crate::order::first_experts;
use motley_engine::{
    DeviceOptions, DeviceRoom, Engine, EngineOptions, GpuDevice, LayerGpu, Loading, MachineReport,
    PrefetchChoice, RoutedBlock, RoutingWatcher, Runtime, Seam, SessionOptions, StreamingOptions,
    ThreadSet, ThreadSets,
};
use motley_ggml::SeamCounts;
use motley_machine::Regime;
use motley_model::ModelSpec;
use motley_plan::budget::Budget;
use motley_sched::Named;
use motley_sched::Rules;
use motley_sched::cache::PolicyChoice;
use motley_sched::strategy::StrategyChoice;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A trained model is sure of how this goes on.
const PROMPT: &str = "1, 2, 3, 4, 5, 6,";
const SHAPE: SessionOptions = SessionOptions {
    context_tokens: 256,
    chunk_tokens: 64,
    kv: motley_model::KvType::F16,
    windows: false,
    precise_attention: false,
    scores: false,
    speculate: motley_engine::Speculate::Off,
};
/// Chunk with everything on the device. For more than eight tokens ggml's Vulkan backend makes
/// larger buffers on the way and drops the old ones, and the lavapipe of Mesa 22.3 then reads them.
const FEW_TOKENS: u32 = 4;
/// llama.cpp counts layers, and takes more for all.
const ALL_LAYERS: u32 = 1 << 16;

/// What is on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Usage {
    /// This part of the experts.
    Experts(f64),
    /// Dense weights, KV cache and this part of the experts.
    DenseAndExperts(f64),
    /// Dense weights and KV cache; half of the experts in memory, all of them read from disk.
    DenseBesideDisk,
    /// The same with this part of the experts.
    AllBesideDisk(f64),
    /// All of it, by llama.cpp.
    Everything,
}

/// How a model is run beside a device.
#[derive(Clone, Copy)]
pub(crate) struct Way<'d> {
    pub(crate) devices: &'d [GpuDevice],
    pub(crate) usage: Usage,
    pub(crate) strategy: StrategyChoice,
    pub(crate) prefetch: PrefetchChoice,
    /// Whether the devices begin with experts, as many as they hold.
    pub(crate) begins_full: bool,
}

impl<'d> Way<'d> {
    pub(crate) fn default_on(devices: &'d [GpuDevice], usage: Usage) -> Self {
        let (strategy, prefetch) = (StrategyChoice::Timelines, PrefetchChoice::WholeLayer);
        Self { devices, usage, strategy, prefetch, begins_full: false }
    }
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (strategy, prefetch) = (self.strategy.name(), self.prefetch.name());
        write!(f, "{:?} {strategy} {prefetch}", self.usage)
    }
}

/// A prompt and the tokens after it.
pub(crate) struct Course {
    pub(crate) tokens: Vec<i32>,
    /// What came before each of them.
    steps: Vec<Step>,
    pub(crate) report: Option<MachineReport>,
    /// Blocks that came through the seam, (token, expert) rows in them, and splits that were no
    /// block.
    pub(crate) blocks: u64,
    pub(crate) rows: u64,
    pub(crate) delegated: u64,
}

struct Step {
    /// `[vocab]`.
    logits: Vec<f32>,
    /// By layer, the experts of the token computed last; sorted.
    experts: Vec<Vec<u32>>,
}

/// The likeliest token after each one, `tokens` of them, on the CPU alone.
pub(crate) fn on_cpu(path: &Path, tokens: usize) -> Course {
    run(path, &EngineOptions::default(), tokens, None)
}

/// The same prompt and the tokens of `said` on the CPU alone.
pub(crate) fn again_on_cpu(path: &Path, said: &[i32]) -> Course {
    run(path, &EngineOptions::default(), said.len(), Some(said))
}

/// The same prompt and the tokens of `said` beside a device: both runs have the same past at
/// every token, so a difference is not carried on by the text.
pub(crate) fn beside(path: &Path, way: Way<'_>, said: &[i32]) -> Course {
    run(path, &options(path, way), said.len(), Some(said))
}

fn options(path: &Path, way: Way<'_>) -> EngineOptions {
    let (spec, _) = ModelSpec::open(path).expect("a model");
    let budget = Budget::of(&spec, SHAPE.shape());
    let slot_bytes = budget.slot_bytes as f64;
    let all = f64::from(spec.expert_layers().count() as u32 * spec.experts);
    let rules = Rules::of(way.strategy, PolicyChoice::default(), way.prefetch);
    let sharing = |share: f64| DeviceOptions {
        experts_most: (all * share) as u32,
        rules,
        most_used: if way.begins_full { first_experts(&spec) } else { Vec::new() },
        // Some more for the rows of a computation, and for a slot to pass experts through.
        ..DeviceOptions::over(rooms(way.devices, slot_bytes * (all * share * 1.2 + 2.0)))
    };
    let (gpu_layers, gpu_experts, share) = match way.usage {
        Usage::Experts(share) => (0, false, Some(share)),
        Usage::DenseAndExperts(share) => (ALL_LAYERS, false, Some(share)),
        Usage::DenseBesideDisk => (ALL_LAYERS, false, None),
        Usage::AllBesideDisk(share) => (ALL_LAYERS, false, Some(share)),
        Usage::Everything => (ALL_LAYERS, true, None),
    };
    let gpu = |device: &GpuDevice| LayerGpu { device: device.clone(), part: 1.0 };
    let gpus = way.devices.iter().filter(|_| gpu_layers > 0).map(gpu).collect();
    let devices = share.map(sharing);
    let (loading, memory_bytes) = match way.usage {
        Usage::DenseBesideDisk | Usage::AllBesideDisk(_) => {
            (Loading::OnDemand, Some(budget.bytes_with(budget.experts / 2)))
        }
        _ => (Loading::Mapped, None),
    };
    EngineOptions {
        loading,
        memory_bytes,
        streaming: StreamingOptions {
            rules: match share {
                Some(_) => rules,
                None => Rules::default_for(Regime::BeyondRam),
            },
            ..StreamingOptions::default()
        },
        devices,
        gpus,
        gpu_layers,
        gpu_experts,
        ..EngineOptions::default()
    }
}

/// `bytes` over devices: each has half as much again as the next.
fn rooms(devices: &[GpuDevice], bytes: f64) -> Vec<DeviceRoom> {
    let parts: Vec<_> = (0..devices.len()).map(|nth| 1.5f64.powi(-(nth as i32))).collect();
    let all: f64 = parts.iter().sum();
    let room = |(device, part): (&GpuDevice, f64)| DeviceRoom {
        device: device.clone(),
        budget_bytes: Some((bytes * part / all) as u64),
    };
    devices.iter().zip(parts).map(room).collect()
}

fn run(path: &Path, options: &EngineOptions, count: usize, said: Option<&[i32]>) -> Course {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    // Plain weights: rearranged ones have other last bits.
    let options = EngineOptions {
        repack: false,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        ..options.clone()
    };
    let engine = Engine::load(runtime, path, &options, &mut |_| true).expect("the model loads");
    let watch = Watch::default();
    let chunk_tokens = if options.gpu_experts { FEW_TOKENS } else { SHAPE.chunk_tokens };
    let shape = SessionOptions { chunk_tokens, ..SHAPE };
    let mut session = engine.watched_session(&shape, Box::new(watch.clone())).expect("a session");
    session.prefill(&engine.tokenize(PROMPT).unwrap()).expect("a prompt");
    let (mut tokens, mut steps) = (Vec::new(), Vec::new());
    for nth in 0..count {
        steps.push(Step { logits: session.logits().to_vec(), experts: watch.take() });
        let token = said.map_or_else(|| likeliest(session.logits()), |said| said[nth]);
        tokens.push(token);
        session.decode(token).expect("a token");
    }
    let report = engine.devices().map(|handle| handle.report());
    let SeamCounts { blocks, rows, delegated, .. } = session.stats().seam;
    Course { tokens, steps, report, blocks, rows, delegated }
}

/// Keeps the experts of the last token of each block: the one logits belong to.
#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Vec<Vec<u32>>>>);

impl Watch {
    fn take(&self) -> Vec<Vec<u32>> {
        std::mem::take(&mut self.0.lock().expect("no panic holds this lock"))
    }
}

impl RoutingWatcher for Watch {
    fn on_routed(&mut self, routed: &RoutedBlock) {
        let mut experts = routed.token(routed.tokens() - 1).to_vec();
        experts.sort_unstable();
        self.0.lock().expect("no panic holds this lock").push(experts);
    }
}

/// How far two runs over the same tokens are apart.
///
/// A distance of logits is the root mean square of their differences, as part of that of the
/// logits, both without their mean (which says nothing about probabilities).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Apart {
    /// Distance before the median token.
    pub(crate) median: f64,
    /// Tokens one of whose routers chose another expert: near a tie, last bits decide that.
    pub(crate) rerouted: usize,
    /// Distance before the worst of the others, and of those.
    pub(crate) worst: f64,
    pub(crate) worst_rerouted: f64,
    /// Tokens both would have said, and how many of them before the first they would not.
    pub(crate) equal: usize,
    pub(crate) equal_text: usize,
    /// Of those they would not, routed alike: by how much the first run preferred its own, at
    /// most, as part of the root mean square of its logits.
    pub(crate) preferred: f64,
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, rerouted, worst, worst_rerouted, equal, equal_text, preferred } = self;
        write!(f, "{median:.1e} (worst {worst:.1e}, {rerouted} rerouted {worst_rerouted:.1e}), ")?;
        write!(f, "{equal} equal, {equal_text} at first, others preferred {preferred:.1e}")
    }
}

impl Apart {
    pub(crate) fn of(first: &Course, second: &Course) -> Self {
        assert_eq!(first.tokens, second.tokens, "another past");
        let pairs = first.steps.iter().zip(&second.steps);
        let steps: Vec<_> = pairs.map(|(a, b)| StepApart::of(a, b)).collect();
        let mut distances: Vec<_> = steps.iter().map(|step| step.distance).collect();
        distances.sort_by(f64::total_cmp);
        let alike = || steps.iter().filter(|step| !step.rerouted);
        let worst = |steps: &mut dyn Iterator<Item = &StepApart>| {
            steps.map(|step| step.distance).fold(0.0, f64::max)
        };
        Self {
            median: distances[distances.len() / 2],
            rerouted: steps.iter().filter(|step| step.rerouted).count(),
            worst: worst(&mut alike()),
            worst_rerouted: worst(&mut steps.iter().filter(|step| step.rerouted)),
            equal: steps.iter().filter(|step| step.is_equal).count(),
            equal_text: steps.iter().take_while(|step| step.is_equal).count(),
            preferred: alike().map(|step| step.preferred).fold(0.0, f64::max),
        }
    }
}

/// One token of both runs.
struct StepApart {
    distance: f64,
    rerouted: bool,
    is_equal: bool,
    preferred: f64,
}

impl StepApart {
    fn of(first: &Step, second: &Step) -> Self {
        let (a, b) = (&first.logits, &second.logits);
        assert!(!a.is_empty() && a.len() == b.len());
        let own = spread(a.iter().copied());
        let (ours, theirs) = (likeliest(a) as usize, likeliest(b) as usize);
        Self {
            distance: (spread(a.iter().zip(b).map(|(a, b)| a - b)) / own).sqrt(),
            // Where llama.cpp has the experts, nobody sees the routing.
            rerouted: !second.experts.is_empty() && first.experts != second.experts,
            is_equal: ours == theirs,
            preferred: f64::from(a[ours] - a[theirs]) / (own / a.len() as f64).sqrt(),
        }
    }
}

/// Sum of the squared distances from the mean.
fn spread(values: impl Iterator<Item = f32> + Clone) -> f64 {
    let (sum, count) =
        values.clone().fold((0.0, 0), |(sum, count), value| (sum + f64::from(value), count + 1));
    let mean = sum / f64::from(count.max(1));
    values.map(|value| (f64::from(value) - mean).powi(2)).sum()
}

fn likeliest(logits: &[f32]) -> i32 {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.expect("logits").0 as i32
}
