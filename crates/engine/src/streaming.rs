//! Experts streamed from disk: what a session is made of when its experts do not
//! all stay in memory, and the figures it shows.

use crate::drive::{Scratch, Streaming};
use crate::experts::{Experts, ExpertsError, slot_bytes};
use crate::foresight::{Foreseen, Foresight, Wants};
use crate::gates::Gates;
use crate::pressure::PressureWatch;
use motley_cost::{ComputeCost, Nanos, TransferCost};
use motley_model::{ModelSpec, Sizes};
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice};
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::scheduler::Counts;
use motley_sched::strategy::OnDemand;
use motley_sched::{Costs, Limits, Scheduler, SchedulerParts};
use motley_store::{Counters, FaultPlan};
use motley_trace::{TraceHeader, record::FORMAT_VERSION};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Allowance for what llama.cpp and the process take beside weights and KV cache: code,
/// vocabulary, graphs, the reader's buffers. After loading, resident memory was 55 MB
/// above the dense weights on a model with 49 k tokens; contexts come on top.
const PROCESS_BYTES: u64 = 192 << 20;
/// Rows of the widest activations kept per token of a chunk, in hidden widths.
const ACTIVATION_ROWS: u64 = 24;
/// Least slots that work: one being computed and one being read.
const MIN_SLOTS: u32 = 2;
/// Loads the scheduler may have in line: the disk takes four at a time and must not run dry
/// while a batch of experts is computed.
const LOADS_IN_FLIGHT: u16 = 64;
/// Slots that guesses may hold.
const GUESS_SLOTS: u32 = 8;
/// Guesses read at once.
const GUESSES_IN_FLIGHT: u16 = 2;

/// What a budget is divided into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Everything but experts: dense weights, a second copy of the routers, KV cache, compute buffers, the process.
    pub fixed_bytes: u64,
    /// One expert's slots.
    pub slot_bytes: u64,
    /// Experts of the model.
    pub experts: u32,
}

/// A budget too small for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "--memory {} MiB is too little: this model needs at least {} MiB (a smaller --context or --chunk helps)",
    given_bytes >> 20,
    (needed_bytes >> 20) + 1
)]
pub struct TooLittleMemory {
    /// What was given.
    pub given_bytes: u64,
    /// What is needed.
    pub needed_bytes: u64,
}

impl Budget {
    /// How the memory of `spec` divides for a session of this shape (M3).
    pub fn of(spec: &ModelSpec, context_tokens: u32, chunk_tokens: u32) -> Self {
        let sizes = Sizes::of(spec);
        let chunk = u64::from(chunk_tokens);
        let logits = chunk * spec.shape.vocabulary.unwrap_or(0) * 4;
        let activations = chunk * spec.shape.hidden * 4 * ACTIVATION_ROWS;
        let kv = sizes.kv_bytes_per_token * u64::from(context_tokens);
        let dense = sizes.dense_bytes + sizes.shared_bytes + Gates::bytes(spec);
        let experts = spec.expert_layers().map(|layer| layer.experts).sum();
        Self {
            fixed_bytes: dense + kv + logits + activations + PROCESS_BYTES,
            slot_bytes: slot_bytes(spec),
            experts,
        }
    }

    /// Slots for experts within `memory_bytes`; never more than all experts and one to read into.
    pub fn slots(&self, memory_bytes: u64) -> Result<u32, TooLittleMemory> {
        let left = memory_bytes.saturating_sub(self.fixed_bytes) / self.slot_bytes.max(1);
        let slots = u32::try_from(left).unwrap_or(u32::MAX).min(self.experts + 1);
        if slots < MIN_SLOTS {
            let needed_bytes = self.smallest_bytes();
            return Err(TooLittleMemory { given_bytes: memory_bytes, needed_bytes });
        }
        Ok(slots)
    }

    /// The least memory that works.
    pub fn smallest_bytes(&self) -> u64 {
        self.fixed_bytes + u64::from(MIN_SLOTS) * self.slot_bytes
    }
}

/// Figures of a streaming session so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamFigures {
    /// What the scheduler counted.
    pub counts: Counts,
    /// What the disk did.
    pub disk: Counters,
    /// How good predictions of the next layer were, when there are any.
    pub foreseen: Option<Foreseen>,
    /// Experts that may stay now; fewer than `slots_most` while memory is scarce (M3).
    pub slots: u32,
    /// Experts that may stay when memory is plentiful.
    pub slots_most: u32,
    /// Memory of the slots in use.
    pub arena_bytes: u64,
}

/// Figures shared between a session and its drive loop.
#[derive(Debug, Default)]
pub(crate) struct StreamStats {
    figures: Mutex<StreamFigures>,
    stall: Mutex<Duration>,
}

impl StreamStats {
    pub(crate) fn set(&self, figures: StreamFigures) {
        *self.figures.lock().expect("no panic holds this lock") = figures;
    }

    pub(crate) fn add_stall(&self, time: Duration) {
        *self.stall.lock().expect("no panic holds this lock") += time;
    }

    /// (figures, time the loop waited for the disk with nothing to compute)
    pub(crate) fn get(&self) -> (StreamFigures, Duration) {
        let figures = *self.figures.lock().expect("no panic holds this lock");
        (figures, *self.stall.lock().expect("no panic holds this lock"))
    }
}

/// How experts are streamed. The defaults are what measured best; the other values are for
/// measuring what each is worth, and for tests.
#[derive(Debug, Clone)]
pub struct StreamingOptions {
    /// Which experts stay when not all can.
    pub policy: PolicyChoice,
    /// What is read before it is asked for, into idle disk time only (M4).
    pub prefetch: PrefetchChoice,
    /// Read past the page cache where the file system allows it.
    pub direct_reads: bool,
    /// Compute what is there while the rest arrives.
    pub overlap: bool,
    /// Faults to inject into reads.
    pub faults: Option<FaultPlan>,
}

impl Default for StreamingOptions {
    fn default() -> Self {
        Self {
            policy: PolicyChoice::default(),
            prefetch: PrefetchChoice::None,
            direct_reads: true,
            overlap: true,
            faults: None,
        }
    }
}

/// Builds the streaming part of a session with room for `slots` experts.
pub(crate) fn streaming(
    spec: &ModelSpec,
    paths: &[PathBuf],
    slots: u32,
    options: &StreamingOptions,
) -> Result<(Streaming, Arc<StreamStats>), ExpertsError> {
    let experts = Experts::open(spec, paths, slots, options)?;
    let header = trace_header(spec);
    let costs = costs(spec, experts.disk().mb_per_s);
    let stats = Arc::new(StreamStats::default());
    let wants = Wants::of(options.policy, options.prefetch);
    let foresight = match wants.any() {
        true => Some(Foresight::new(Gates::read(spec, paths)?, wants)),
        false => None,
    };
    let scheduler = scheduler(&header, costs, slots, options);
    let cache_slots = scheduler.cache().capacity().total();
    let least = cache_slots.min(spec.used);
    let streaming = Streaming {
        scheduler,
        experts,
        foresight,
        overlap: options.overlap,
        pressure: PressureWatch::new(least, cache_slots, Nanos::ZERO),
        staging_slots: slots - cache_slots,
        stats: Arc::clone(&stats),
        started: now(),
        scratch: Scratch::default(),
    };
    Ok((streaming, stats))
}

fn scheduler(
    header: &TraceHeader,
    costs: Costs,
    slots: u32,
    options: &StreamingOptions,
) -> Scheduler {
    let limits = limits(slots, options.prefetch);
    let capacity = Capacity::Global { slots: slots - u32::from(limits.staging_slots) };
    Scheduler::new(SchedulerParts {
        costs,
        cache: ExpertCache::new(header.grid(), capacity, options.policy.build(header)),
        strategy: Box::new(OnDemand::default()),
        prefetcher: options.prefetch.build(header.grid()),
        limits,
    })
}

/// Of the slots one is for experts that do not stay, and with a prefetcher some for guesses.
fn limits(slots: u32, prefetch: PrefetchChoice) -> Limits {
    let guesses = match prefetch {
        PrefetchChoice::None => 0,
        _ => (slots.saturating_sub(MIN_SLOTS) / 4).min(GUESS_SLOTS) as u16,
    };
    Limits {
        loads_in_flight: LOADS_IN_FLIGHT,
        staging_slots: 1 + guesses,
        prefetch_slots: guesses,
        guesses_in_flight: GUESSES_IN_FLIGHT,
        // The reader has tried twice already.
        load_attempts: 1,
    }
}

/// The disk as measured. Computing is not measured here; no decision of this
/// strategy depends on it.
fn costs(spec: &ModelSpec, disk_mb_per_s: f64) -> Costs {
    let expert_bytes = Sizes::of(spec).expert_bytes_max;
    Costs {
        fast: ComputeCost { launch_us: 0.0, per_token_us: 0.0, floor_us: 0.0 },
        home: None,
        link: TransferCost::new(0.0, (disk_mb_per_s / 1e3).max(0.001)),
        expert_bytes,
    }
}

fn trace_header(spec: &ModelSpec) -> TraceHeader {
    let name = spec.name.clone().unwrap_or_else(|| spec.architecture.clone());
    TraceHeader {
        version: FORMAT_VERSION,
        model: name,
        layers: spec.shape.layers as u16,
        experts: spec.experts as u16,
        k: spec.used as u16,
    }
}

#[allow(clippy::disallowed_methods, reason = "a driver reads the clock")]
fn now() -> Instant {
    Instant::now()
}
