//! Experts streamed from disk: what a session is made of when its experts do not
//! all stay in memory.

use crate::drive::{Scratch, Streaming};
use crate::experts::{Experts, ExpertsError};
use crate::figures::{BlockTimes, StreamFigures};
use crate::foresight::{Foresight, Wants};
use crate::gates::Gates;
use crate::pressure::PressureWatch;
use motley_cost::{ComputeCost, Nanos, TransferCost};
use motley_model::{ModelSpec, Sizes};
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice};
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::strategy::OnDemand;
use motley_sched::{Costs, Limits, Scheduler, SchedulerParts};
use motley_store::FaultPlan;
use motley_trace::{TraceHeader, record::FORMAT_VERSION};
use std::path::PathBuf;
use std::time::Instant;

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
            prefetch: PrefetchChoice::NextLayerDecode,
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
) -> Result<Streaming, ExpertsError> {
    let experts = Experts::open(spec, paths, slots, options)?;
    let header = trace_header(spec);
    let costs = costs(spec, experts.disk().mb_per_s);
    let wants = Wants::of(options.policy, options.prefetch);
    let foresight = match wants.any() {
        true => Some(Foresight::new(Gates::read(spec, paths)?, wants)),
        false => None,
    };
    let scheduler = scheduler(&header, costs, slots, options);
    let cache_slots = scheduler.cache().capacity().total();
    let least = cache_slots.min(spec.used);
    Ok(Streaming {
        scheduler,
        experts,
        foresight,
        overlap: options.overlap,
        pressure: PressureWatch::new(least, cache_slots, Nanos::ZERO),
        slots_least: cache_slots,
        staging_slots: slots - cache_slots,
        started: now(),
        times: BlockTimes::default(),
        counted: StreamFigures::default(),
        scratch: Scratch::default(),
        timeline: None,
    })
}

fn scheduler(
    header: &TraceHeader,
    costs: Costs,
    slots: u32,
    options: &StreamingOptions,
) -> Scheduler {
    let limits = Limits::beyond_ram(slots, options.prefetch);
    let capacity = Capacity::Global { slots: slots - u32::from(limits.staging_slots) };
    Scheduler::new(SchedulerParts {
        costs,
        cache: ExpertCache::new(header.grid(), capacity, options.policy.build(header)),
        strategy: Box::new(OnDemand::default()),
        prefetcher: options.prefetch.build(header.grid()),
        limits,
    })
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

pub(crate) fn trace_header(spec: &ModelSpec) -> TraceHeader {
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
