//! The results in the words of a machine file, so that everything that takes a machine
//! (`motley sim --machine`) takes this one.

use motley_cost::calibration::{DiskCost, ExpertCost, MemoryRate, Provenance as Run};
use motley_host::topology::Topology;
use motley_machine::load::FORMAT_VERSION;
use motley_machine::{Device, DeviceKind, Link, Machine, Provenance};

/// Stands for a frequency nobody tells (virtual machines); the field must be above zero.
const UNKNOWN_GHZ: f64 = 1.0;

/// What was measured and read.
pub(super) struct Found<'a> {
    pub(super) topology: Option<&'a Topology>,
    pub(super) memory_bytes: u64,
    pub(super) memory: &'a [MemoryRate],
    pub(super) disk: Option<&'a DiskCost>,
    pub(super) experts: &'a [ExpertCost],
}

/// This machine: the CPU with what its kernels reached (no peaks: efficiency is inside), and
/// the disk.
pub(super) fn machine(run: &Run, found: &Found<'_>) -> Machine {
    let mut devices = vec![cpu(found)];
    let mut links = Vec::new();
    if let Some(disk) = found.disk {
        devices.push(device("disk", DeviceKind::Disk, disk.gb_per_s, disk.latency_us));
        links.push(Link {
            from: "disk".into(),
            to: "cpu".into(),
            bandwidth_gb_per_s: disk.gb_per_s,
            latency_us: disk.latency_us,
            bus: None,
        });
    }
    Machine {
        version: FORMAT_VERSION,
        name: "this".into(),
        summary: format!("{}, {} cores, measured {}", run.cpu, run.cores, run.date),
        provenance: Provenance::Measured,
        devices,
        links,
        clusters: found.topology.map_or(vec![], |t| t.machine_clusters("cpu", UNKNOWN_GHZ)),
        power: None,
    }
}

fn cpu(found: &Found<'_>) -> Device {
    let best = found
        .experts
        .iter()
        .filter(|cost| cost.us_per_mflop > 0.0)
        .min_by(|a, b| a.us_per_mflop.total_cmp(&b.us_per_mflop));
    let rate = found.memory.iter().map(|rate| rate.gb_per_s).fold(0.0, f64::max);
    let launch_us = best.map_or(0.0, |cost| cost.launch_us);
    Device {
        memory_gib: found.memory_bytes as f64 / (1_u64 << 30) as f64,
        // 10⁶ operations in a microsecond are 10¹² in a second.
        compute_tflops: best.map_or(0.01, |cost| 1.0 / cost.us_per_mflop),
        ..device("cpu", DeviceKind::Cpu, rate.max(0.1), launch_us)
    }
}

fn device(name: &str, kind: DeviceKind, bandwidth_gb_per_s: f64, launch_us: f64) -> Device {
    Device {
        name: name.into(),
        kind,
        count: 1,
        memory_gib: 0.0,
        shares_memory_of: None,
        compute_tflops: 0.0,
        bandwidth_gb_per_s,
        launch_us,
        idle_w: None,
        busy_w: None,
    }
}
