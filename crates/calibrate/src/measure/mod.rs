//! Measures this machine within a time limit and fits the costs. Needs an idle machine to mean
//! anything; says in the result how idle it was.
//!
//! * [`experts`]: experts on the CPU and on GPUs through ggml's kernels.
//! * [`bandwidth`]: reading memory, by number of threads.
//! * [`disk`]: reading expert-sized ranges.
//! * [`links`]: copies to and from GPUs.
//! * `clock`: repeating something within a slice of time.
//! * `describe`: the results in the words of a machine file.
//! * `error`: why a measurement could not be made.

pub mod bandwidth;
mod clock;
mod describe;
pub mod disk;
mod error;
pub mod experts;
pub mod links;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use motley_cost::calibration::{Calibration, DeviceCost, FORMAT_VERSION, Provenance};
use motley_ggml::gpu::gpu_devices;
use motley_ggml::{Runtime, cpu};
use motley_host::{cpu_name, load, memory, topology};

pub use clock::Steps;
pub use disk::DiskError;
pub use error::MeasureError;
pub use experts::Kind;

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
pub struct Wanted {
    /// Time for everything; a little is kept back.
    pub budget: Duration,
    /// Most threads; by default every core.
    pub threads: Option<u32>,
    /// A file to read, or a folder to make one in for the moment; without it no disk.
    pub disk: Option<PathBuf>,
    /// A model's own experts, measured beside the usual ones.
    pub kinds: Vec<Kind>,
    /// Program and version for the provenance.
    pub program: String,
    /// For places on the disk.
    pub seed: u64,
}

/// Measures everything; `told` hears what is done now and how far it is, 0 to 1.
pub fn measure(
    runtime: &Runtime,
    wanted: &Wanted,
    told: &mut dyn FnMut(&str, f64),
) -> Result<Calibration, MeasureError> {
    let start = Instant::now();
    let root = Path::new("/");
    let topology = topology::read(root);
    let cores = topology.as_ref().map_or_else(parallelism, |t| t.cores() as u32);
    let load_one_min = load::average(root).map(|load| load.one_min);
    let counts = thread_counts(wanted.threads.unwrap_or(cores));
    let cache_bytes =
        topology.as_ref().map_or(32 << 20, |t| t.cache_bytes(3).max(t.cache_bytes(2)));
    let mut steps = Steps::new(told);

    steps.part(0.0, MEMORY_SHARE);
    let size_bytes = working_set_bytes(cache_bytes);
    let slice = wanted.budget.mul_f64(MEMORY_SHARE);
    let memory = bandwidth::measure(&counts, size_bytes, slice, &mut steps);
    steps.part(MEMORY_SHARE, DISK_SHARE);
    let slice = wanted.budget.mul_f64(DISK_SHARE);
    let disk = match &wanted.disk {
        Some(path) => Some(disk::measure(path, slice, wanted.seed, &mut steps)?),
        None => None,
    };
    let slice = wanted.budget.mul_f64(LINKS_SHARE);
    let links = links::measure(runtime, slice, &mut steps)?;
    steps.part(MEMORY_SHARE + DISK_SHARE, 1.0 - MEMORY_SHARE - DISK_SHARE);
    let until = start + wanted.budget.mul_f64(MEMORY_SHARE + DISK_SHARE + EXPERTS_SHARE);
    let kinds = experts::kinds(&wanted.kinds);
    let subject = experts::Subject { runtime, kinds: &kinds, stack_bytes: size_bytes };
    let devices = on_devices(&subject, wanted.budget.mul_f64(DEVICES_SHARE), &mut steps)?;
    let experts = experts::measure(&subject, &counts, until, &mut steps)?;

    let provenance = Provenance {
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        program: wanted.program.clone(),
        cpu: cpu_name::read(root).unwrap_or_default(),
        cores,
        instructions: cpu::built_features(),
        load_one_min,
        took_s: start.elapsed().as_secs_f64(),
    };
    let found = describe::Found {
        topology: topology.as_ref(),
        memory_bytes: memory::read(root).map_or(0, |memory| memory.total_bytes),
        memory: &memory,
        disk: disk.as_ref(),
        experts: &experts,
    };
    let machine = describe::machine(&provenance, &found);
    let version = FORMAT_VERSION;
    Ok(Calibration { version, provenance, machine, memory, disk, links, experts, devices })
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

fn parallelism() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
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
