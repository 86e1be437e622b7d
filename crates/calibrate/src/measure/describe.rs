//! The results in the words of a machine file, so that everything that takes a machine
//! (`motley sim --machine`) takes this one.

use motley_cost::ExpertShape;
use motley_cost::calibration::{DiskCost, ExpertCost, MemoryRate, Provenance as Run};
use motley_host::topology::Topology;
use motley_machine::error::FORMAT_VERSION;
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
    let tflops = found.experts.iter().filter_map(reached_tflops).fold(0.0, f64::max);
    let rate = found.memory.iter().map(|rate| rate.gb_per_s).fold(0.0, f64::max);
    let launches = found.experts.iter().map(|cost| cost.block_us);
    Device {
        memory_gib: found.memory_bytes as f64 / (1_u64 << 30) as f64,
        compute_tflops: tflops.max(1e-3),
        ..device("cpu", DeviceKind::Cpu, rate.max(0.1), launches.fold(0.0, f64::max))
    }
}

/// What the largest measured block reached.
fn reached_tflops(cost: &ExpertCost) -> Option<f64> {
    let shape = ExpertShape::new(cost.hidden, cost.intermediate, cost.bits_per_weight);
    let last = cost.measured.last()?;
    Some(f64::from(last.tokens) * shape.flop_per_token() / last.took_us * 1e-6)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_a_valid_machine_file() {
        let run = Run {
            date: "2026-01-31T12:00:00Z".into(),
            program: "motley".into(),
            cpu: "Some CPU".into(),
            cores: 2,
            instructions: vec![],
            load_one_min: None,
            took_s: 1.0,
        };
        let disk = DiskCost {
            what: "ext4".into(),
            direct: true,
            backend: "uring".into(),
            in_flight: 4,
            gb_per_s: 1.2,
            latency_us: 90.0,
            alone_gb_per_s: 0.9,
            residuals: Default::default(),
        };
        let memory = [MemoryRate { threads: 2, gb_per_s: 20.0 }];
        let found = Found {
            topology: None,
            memory_bytes: 8 << 30,
            memory: &memory,
            disk: Some(&disk),
            experts: &[],
        };
        let text = toml::to_string(&machine(&run, &found)).unwrap();
        let read = Machine::parse(&text, "this.toml").unwrap();
        assert_eq!(read.device("cpu").unwrap().bandwidth_gb_per_s, 20.0);
        assert_eq!(read.link("disk", "cpu").unwrap().latency_us, 90.0);
    }
}
