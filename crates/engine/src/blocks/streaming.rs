//! Experts streamed from disk: what a session is made of when its experts do not
//! all stay in memory.

use crate::blocks::drive::{Scratch, Streaming};
use crate::blocks::experts::{Experts, ExpertsError};
use crate::blocks::figures::{BlockTimes, StreamFigures};
use crate::blocks::gates::Gates;
use crate::blocks::options::StreamingOptions;
use crate::blocks::predict::{Predictor, Wants};
use crate::blocks::pressure::PressureWatch;
use crate::clock::now;
use motley_cost::{ComputeCost, Nanos, TransferCost};
use motley_model::{ModelSpec, OpenedFile, Sizes};
use motley_plan::ExpertKernels;
use motley_sched::{Costs, SchedulerSetup};
use motley_trace::{TraceHeader, record::FORMAT_VERSION};
use std::sync::Arc;

/// Builds the streaming part of a session with room for `slots` experts.
pub(crate) fn streaming(
    spec: &ModelSpec,
    files: &[OpenedFile],
    slots: u32,
    options: &StreamingOptions,
) -> Result<Streaming, ExpertsError> {
    let experts = Experts::open(spec, files, slots, options)?;
    let header = trace_header(spec);
    // The simulator builds the same from the same rules.
    let costs = costs(spec, experts.disk().mb_per_s);
    let setup = SchedulerSetup::beyond_ram(options.rules, slots, costs);
    let wants = Wants::of(&options.rules);
    let predictor = match wants.any() {
        true => Some(Predictor::new(Gates::read(spec, files)?, wants)),
        false => None,
    };
    let scheduler = setup.scheduler(&header);
    let cache_slots = setup.first().capacity.total();
    let least = cache_slots.min(spec.used);
    Ok(Streaming {
        scheduler,
        setup,
        experts,
        predictor,
        overlap: options.overlap,
        pressure: PressureWatch::new(least, cache_slots, Nanos::ZERO),
        slots_least: cache_slots,
        staging_slots: slots - cache_slots,
        started: now(),
        times: BlockTimes::default(),
        counted: StreamFigures::default(),
        scratch: Scratch::default(),
        timeline: None,
        step: Arc::default(),
        kernels: ExpertKernels::exact(),
    })
}

/// The disk as measured. Computing is not measured here; no decision of this
/// strategy depends on it.
fn costs(spec: &ModelSpec, disk_mb_per_s: f64) -> Costs {
    let expert_bytes = Sizes::of(spec).expert_bytes_max;
    Costs::one_tier(
        ComputeCost { launch_us: 0.0, per_token_us: 0.0, floor_us: 0.0 },
        TransferCost::new(0.0, (disk_mb_per_s / 1e3).max(0.001)),
        None,
        expert_bytes,
    )
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
