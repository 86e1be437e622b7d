//! Everything read from the machine, as plain data for programs (`--json`) and for advice.

use std::path::Path;

use motley_host::energy::Missing;
use motley_host::{
    accelerators, cpu_name, disk, energy, huge_pages, load, memory, power, pressure, topology,
};
use serde::Serialize;

use super::build::Build;
use super::direct::DirectIo;

/// This machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// What the processor is called.
    pub cpu: Option<String>,
    /// Whether a hypervisor is below.
    pub is_virtual: bool,
    pub sockets: usize,
    /// Cores without their siblings.
    pub cores: usize,
    /// Logical CPUs.
    pub threads: usize,
    /// Equal cores, biggest first.
    pub clusters: Vec<Cluster>,
    /// All caches of a level together: (level, bytes), data and unified.
    pub caches_bytes: Vec<(u32, u64)>,
    pub memory_nodes: usize,
    /// Tasks running or waiting, averaged over a minute.
    pub load_one_min: Option<f64>,
    /// Memory and limits.
    pub memory: Option<Memory>,
    /// Percent of the last 10 s in which some task waited for memory.
    pub pressure_some_avg10: Option<f64>,
    /// Setting of transparent huge pages.
    pub huge_pages: Option<&'static str>,
    /// The disk below the given path.
    pub disk: Option<Disk>,
    /// Whether files there can be read past the page cache.
    pub direct_io: DirectIo,
    /// GPUs the kernel shows.
    pub gpus: Vec<Shown>,
    /// NPUs the kernel shows.
    pub npus: Vec<Shown>,
    /// Battery charge in percent while it is emptied; `None` on mains power.
    pub on_battery_percent: Option<u32>,
    pub meter: Meter,
    /// Names of the energy meters of GPUs.
    pub gpu_meters: Vec<String>,
    /// What this build of ggml can use.
    pub build: Build,
    /// The calibration that counts here.
    pub calibration: Option<Calibrated>,
    /// What `serve` and `run` give up here.
    pub sandbox: Sandbox,
}

/// What is known other than from the machine's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// What this build of ggml can use.
    pub build: Build,
    /// Whether files can be read past the page cache.
    pub direct_io: DirectIo,
    /// The calibration that counts here.
    pub calibration: Option<Calibrated>,
    /// Names of the energy meters of GPUs.
    pub gpu_meters: Vec<String>,
    /// What this kernel lets a process give up.
    pub sandbox: Sandbox,
}

/// What `serve` and `run` give up where it is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sandbox {
    /// Version of Landlock, which restricts files; `None` without one.
    pub landlock_abi: Option<u32>,
    /// Whether system calls can be refused.
    pub seccomp: bool,
}

/// A calibration, in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibrated {
    /// When it was measured.
    pub date: String,
    /// Tasks running or waiting at that time.
    pub load_one_min: Option<f64>,
    /// Measured in seconds for one model.
    pub quick: bool,
}

/// Equal cores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// What the core is called, where known.
    pub name: Option<String>,
    pub cores: usize,
    /// `prime`, `performance` or `efficiency`.
    pub role: motley_machine::CoreRole,
    /// Highest frequency, where known.
    pub max_ghz: Option<f64>,
}

/// Memory and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// What the machine has.
    pub total_bytes: u64,
    /// What could be taken without swapping.
    pub available_bytes: u64,
    /// Lowest limit of a control group.
    pub limit_bytes: Option<u64>,
    /// What this process may still take.
    pub room_bytes: u64,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// `nvme0n1`.
    pub device: Option<String>,
    /// For people: `NVMe`, `rotating`, ….
    pub kind: &'static str,
    /// Reads at random are slow: it rotates, or lies behind a network.
    pub slow_at_random: bool,
    /// It is memory itself.
    pub is_memory: bool,
    /// `ext4`.
    pub filesystem: String,
    /// Where it is mounted.
    pub mount: String,
}

/// An accelerator the kernel shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    pub vendor: Option<&'static str>,
    pub driver: Option<String>,
    /// How it is shown.
    pub node: String,
}

/// The energy meter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Meter {
    /// What is read; `none` without one.
    pub name: String,
    /// Whether there is one.
    pub works: bool,
    /// Counter that only root may read.
    pub unreadable: Option<String>,
    /// Program that would tell, and that only root may run.
    pub root_only: Option<String>,
}

impl Facts {
    /// Reads the machine below `root` and the disk that holds `path`.
    pub fn read(root: &Path, path: &Path, known: Known) -> Self {
        let Known { build, direct_io, calibration, gpu_meters, sandbox } = known;
        let topology = topology::read(root);
        let (gpus, npus) = accelerators::read(root)
            .into_iter()
            .partition::<Vec<_>, _>(|a| a.kind == accelerators::AcceleratorKind::Gpu);
        Self {
            cpu: cpu_name::read(root),
            is_virtual: cpu_name::is_virtual(root),
            sockets: topology.as_ref().map_or(1, topology::Topology::packages),
            cores: topology.as_ref().map_or_else(parallelism, topology::Topology::cores),
            threads: topology.as_ref().map_or_else(parallelism, |t| t.cpus.len()),
            clusters: topology.as_ref().map_or(vec![], clusters),
            caches_bytes: topology.as_ref().map_or(vec![], caches),
            memory_nodes: topology.as_ref().map_or(0, |t| t.nodes.len()),
            load_one_min: load::average(root).map(|load| load.one_min),
            memory: memory::read(root).ok().map(Memory::of),
            pressure_some_avg10: pressure::read(root).map(|pressure| pressure.some_avg10),
            huge_pages: huge_pages::read(root).and_then(|huge| huge.transparent).map(huge_name),
            disk: disk_of(root, path),
            direct_io,
            gpus: gpus.into_iter().map(Shown::of).collect(),
            npus: npus.into_iter().map(Shown::of).collect(),
            on_battery_percent: match power::read(root) {
                power::PowerSource::Mains => None,
                power::PowerSource::Battery { percent } => Some(percent.unwrap_or(0)),
            },
            meter: Meter::of(energy::find(root)),
            gpu_meters,
            build,
            calibration,
            sandbox,
        }
    }
}

fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn clusters(topology: &topology::Topology) -> Vec<Cluster> {
    let cluster = |cluster: &topology::Cluster| Cluster {
        name: cluster.name.clone(),
        cores: cluster.cores,
        role: cluster.role,
        max_ghz: cluster.max_khz.map(|khz| khz as f64 / 1e6),
    };
    topology.clusters.iter().map(cluster).collect()
}

fn caches(topology: &topology::Topology) -> Vec<(u32, u64)> {
    let levels = (1..=4).map(|level| (level, topology.cache_bytes(level)));
    levels.filter(|(_, bytes)| *bytes > 0).collect()
}

fn huge_name(setting: huge_pages::Transparent) -> &'static str {
    match setting {
        huge_pages::Transparent::Always => "always",
        huge_pages::Transparent::OnRequest => "madvise",
        huge_pages::Transparent::Never => "never",
    }
}

fn disk_of(root: &Path, path: &Path) -> Option<Disk> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let disk = disk::of_path(root, &real)?;
    Some(Disk {
        device: disk.device,
        kind: disk.kind.name(),
        slow_at_random: matches!(disk.kind, disk::DiskKind::Rotational | disk::DiskKind::Network),
        is_memory: disk.kind == disk::DiskKind::Memory,
        filesystem: disk.filesystem,
        mount: disk.mount.display().to_string(),
    })
}

impl Memory {
    fn of(state: memory::MemoryState) -> Self {
        Self {
            total_bytes: state.total_bytes,
            available_bytes: state.available_bytes,
            limit_bytes: state.limit_bytes,
            room_bytes: state.room_bytes,
        }
    }
}

impl Sandbox {
    /// As tried on this kernel.
    pub fn of(offered: motley_host::sandbox::Offered) -> Self {
        Self { landlock_abi: offered.landlock_abi, seccomp: offered.seccomp }
    }
}

impl Shown {
    fn of(accelerator: accelerators::Accelerator) -> Self {
        Self { vendor: accelerator.vendor, driver: accelerator.driver, node: accelerator.node }
    }
}

impl Meter {
    fn of(found: energy::Found) -> Self {
        let (mut unreadable, mut root_only) = (None, None);
        match &found.missing {
            Some(Missing::Permission { file }) => unreadable = Some(file.display().to_string()),
            Some(Missing::RootOnly { program }) => root_only = Some(program.display().to_string()),
            Some(Missing::NotShown) | None => (),
        }
        Self { name: found.meter.name(), works: found.missing.is_none(), unreadable, root_only }
    }
}
