//! Measures this machine within a time limit and fits the costs. Needs an idle machine to mean
//! anything; says in the result how idle it was.
//!
//! * [`quick`](mod@quick): a few seconds on one model's experts, for the first run on a machine.
//! * `experts`: on the CPU and on GPUs through ggml's kernels.
//! * `ways`: in which layouts and ways.
//! * `bandwidth`: reading memory, by number of threads.
//! * `disk`: reading expert-sized ranges.
//! * `links`: copies to and from GPUs.
//! * `clock`: repeating something within a slice of time. `error`: why measuring fails.

mod bandwidth;
mod clock;
mod disk;
mod error;
mod experts;
mod links;
pub mod quick;
mod ways;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use motley_cost::calibration::{CalibrationFile, DeviceCost, DiskCost, FORMAT_VERSION, Provenance};
use motley_ggml::gpu::gpu_devices;
use motley_ggml::{Runtime, cpu};
use motley_host::{cpu_name, load, topology};
use motley_store::ProbeLimit;

use crate::describe::{Results, core_count, this_machine, with_measured};
pub use crate::kind::ExpertKind;
use clock::Steps;
pub use disk::DiskError;
pub use error::MeasureError;
use experts::Depth;

/// Part of the time for experts; what is left goes to memory, the disk and being early.
const EXPERTS_SHARE: f64 = 0.75;
/// Part for the disk.
const DISK_SHARE: f64 = 0.1;
/// Part for memory.
const MEMORY_SHARE: f64 = 0.08;

/// Part for links to GPUs, where there are any; taken from the experts' part.
const LINKS_SHARE: f64 = 0.05;
/// The same for experts on GPUs.
const DEVICES_SHARE: f64 = 0.25;

/// What to measure.
#[derive(Debug, Clone)]
pub struct MeasureOptions {
    /// Time for everything; a little is kept back.
    pub budget: Duration,
    /// Most threads; by default every core.
    pub threads: Option<u32>,
    /// A file to read, or a folder to write a temporary one in; without it no disk.
    pub disk: Option<PathBuf>,
    /// A model's own experts, measured beside the default ones.
    pub kinds: Vec<ExpertKind>,
    /// Program and version for the provenance.
    pub program: String,
    /// For places on the disk.
    pub seed: u64,
}

/// Measures everything; `on_progress` hears what is done now and how far it is, 0 to 1.
pub fn measure(
    runtime: &Runtime,
    options: &MeasureOptions,
    on_progress: &mut dyn FnMut(&str, f64),
) -> Result<CalibrationFile, MeasureError> {
    let extent = Extent {
        kinds: crate::kind::with_defaults(&options.kinds),
        depth: Depth::FULL,
        counts: thread_counts,
        disk_bytes: u64::MAX,
        is_quick: false,
    };
    run(runtime, options, &extent, &mut Steps::new(on_progress))
}

/// What distinguishes a full calibration from a quick one.
struct Extent {
    kinds: Vec<ExpertKind>,
    depth: Depth,
    /// Numbers of threads to measure, given the largest.
    counts: fn(u32) -> Vec<u32>,
    /// Most bytes read from the disk.
    disk_bytes: u64,
    is_quick: bool,
}

fn run(
    runtime: &Runtime,
    options: &MeasureOptions,
    extent: &Extent,
    steps: &mut Steps<'_>,
) -> Result<CalibrationFile, MeasureError> {
    let start = Instant::now();
    let root = Path::new("/");
    let topology = topology::read(root);
    let cores = core_count(topology.as_ref()) as u32;
    let load_one_min = load::average(root).map(|load| load.one_min);
    let counts = (extent.counts)(options.threads.unwrap_or(cores));
    let cache_bytes =
        topology.as_ref().map_or(32 << 20, |t| t.cache_bytes(3).max(t.cache_bytes(2)));

    steps.part(0.0, MEMORY_SHARE);
    let size_bytes = working_set_bytes(cache_bytes);
    let slice = options.budget.mul_f64(MEMORY_SHARE);
    let memory = bandwidth::measure(&counts, size_bytes, slice, steps);
    steps.part(MEMORY_SHARE, DISK_SHARE);
    let disk = on_disk(options, extent, steps)?;
    let slice = options.budget.mul_f64(LINKS_SHARE);
    let links = links::measure(runtime, slice, steps)?;
    steps.part(MEMORY_SHARE + DISK_SHARE, 1.0 - MEMORY_SHARE - DISK_SHARE);
    let until = start + options.budget.mul_f64(MEMORY_SHARE + DISK_SHARE + EXPERTS_SHARE);
    let Extent { kinds, depth, .. } = extent;
    let subject = experts::Subject { runtime, kinds, depth: *depth, stack_bytes: size_bytes };
    let devices = on_devices(&subject, options.budget.mul_f64(DEVICES_SHARE), steps)?;
    let experts = experts::measure(&subject, &counts, until, steps)?;

    let provenance = Provenance {
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        program: options.program.clone(),
        cpu: cpu_name::read(root).unwrap_or_default(),
        cores,
        instructions: cpu::built_features(),
        load_one_min,
        took_s: start.elapsed().as_secs_f64(),
        quick: extent.is_quick,
    };
    let results = Results {
        run: &provenance,
        memory: &memory,
        disk: disk.as_ref(),
        links: &links,
        experts: &experts,
        devices: &devices,
    };
    let machine = with_measured(this_machine(runtime, options.disk.as_deref()), &results);
    let version = FORMAT_VERSION;
    Ok(CalibrationFile { version, provenance, machine, memory, disk, links, experts, devices })
}

/// The disk, where one was asked for. A quick measurement does without: the file of a tiny model
/// is too small for it, and any other reason is a warning.
fn on_disk(
    options: &MeasureOptions,
    extent: &Extent,
    steps: &mut Steps<'_>,
) -> Result<Option<DiskCost>, MeasureError> {
    let Some(path) = &options.disk else { return Ok(None) };
    let time = options.budget.mul_f64(DISK_SHARE);
    let limit = ProbeLimit { time, bytes: extent.disk_bytes };
    match disk::measure(path, limit, options.seed, steps) {
        Ok(cost) => Ok(Some(cost)),
        Err(DiskError::Small { .. }) if extent.is_quick => Ok(None),
        Err(error) if extent.is_quick => {
            tracing::warn!("the disk is taken as the system describes it: {error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Experts on every GPU; nothing without one.
fn on_devices(
    subject: &experts::Subject<'_>,
    slice: Duration,
    steps: &mut Steps<'_>,
) -> Result<Vec<DeviceCost>, MeasureError> {
    let gpus = gpu_devices(subject.runtime);
    let each = slice / gpus.len().max(1) as u32;
    let measured = |gpu| experts::measure_on(gpu, subject, Instant::now() + each, steps);
    gpus.iter().map(measured).collect()
}

/// One, half of all and all threads.
fn thread_counts(most: u32) -> Vec<u32> {
    let mut counts = vec![1, (most / 2).max(1), most.max(1)];
    counts.dedup();
    counts
}

/// Memory to walk over so that no cache holds it, within reason.
fn working_set_bytes(cache_bytes: u64) -> u64 {
    (cache_bytes * 3 / 2).clamp(64 << 20, 256 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_are_few_and_rise() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(16), [1, 8, 16]);
        assert_eq!(working_set_bytes(1 << 20), 64 << 20);
        assert_eq!(working_set_bytes(1 << 30), 256 << 20);
    }
}
