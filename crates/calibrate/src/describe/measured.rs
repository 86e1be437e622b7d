//! The description with what a calibration found, so that everything that takes a machine
//! (`motley sim --machine`) takes this one. What was not measured stays assumed.

use motley_cost::ExpertShape;
use motley_cost::calibration::{
    DeviceCost, DiskCost, ExpertCost, LinkCost, MemoryRate, Provenance as Run,
};
use motley_machine::{Device, DeviceKind, Link, Machine, Provenance};

/// Names of the CPU and the disk in a description.
pub(super) const CPU: &str = "cpu";
pub(super) const DISK: &str = "disk";
/// ggml's name of the CPU, in links.
const GGML_CPU: &str = "CPU";

/// What was measured, and when.
pub(crate) struct Results<'a> {
    pub(crate) run: &'a Run,
    pub(crate) memory: &'a [MemoryRate],
    pub(crate) disk: Option<&'a DiskCost>,
    pub(crate) links: &'a [LinkCost],
    pub(crate) experts: &'a [ExpertCost],
    pub(crate) devices: &'a [DeviceCost],
}

/// `machine` with measured rates: what kernels reached (no peaks: efficiency is inside).
pub(crate) fn with_measured(mut machine: Machine, results: &Results<'_>) -> Machine {
    let run = results.run;
    machine.summary = format!("{}, {} cores, measured {}", run.cpu, run.cores, run.date);
    machine.provenance = Provenance::Measured;
    for device in &mut machine.devices {
        let gpu = results.devices.iter().find(|cost| cost.name == device.name);
        match device.kind {
            DeviceKind::Cpu => {
                let rate = results.memory.iter().map(|rate| rate.gb_per_s).fold(0.0, f64::max);
                set_computing(device, results.experts, Some(rate));
            }
            DeviceKind::Disk => results.disk.into_iter().for_each(|disk| set_disk(device, disk)),
            _ => gpu.into_iter().for_each(|gpu| set_computing(device, &gpu.experts, None)),
        }
    }
    for link in &mut machine.links {
        set_link(link, results);
    }
    machine
}

/// Rates of a device that ran experts; without a rate of memory, that of their weights.
fn set_computing(device: &mut Device, experts: &[ExpertCost], memory_gb_per_s: Option<f64>) {
    let most =
        |of: fn(&ExpertCost) -> Option<f64>| experts.iter().filter_map(of).fold(0.0, f64::max);
    let tflops = most(reached_tflops);
    let gb_per_s = memory_gb_per_s.unwrap_or_else(|| most(reached_gb_per_s));
    if tflops <= 0.0 || gb_per_s <= 0.0 {
        return;
    }
    device.compute_tflops = tflops.max(1e-3);
    device.bandwidth_gb_per_s = gb_per_s.max(0.1);
    device.launch_us = most(|cost| Some(cost.block_us));
    device.assumed = None;
}

fn set_disk(device: &mut Device, disk: &DiskCost) {
    device.bandwidth_gb_per_s = disk.gb_per_s;
    device.launch_us = disk.latency_us;
    device.assumed = None;
}

fn set_link(link: &mut Link, results: &Results<'_>) {
    let measured = match results.disk.filter(|_| link.from == DISK) {
        Some(disk) => Some((disk.gb_per_s, disk.latency_us)),
        None => {
            let name = |name: &str| if name == CPU { GGML_CPU.to_owned() } else { name.to_owned() };
            let ends = (name(&link.from), name(&link.to));
            let same = |cost: &&LinkCost| (&cost.from, &cost.to) == (&ends.0, &ends.1);
            results.links.iter().find(same).map(|cost| (cost.gb_per_s, cost.latency_us))
        }
    };
    if let Some((gb_per_s, latency_us)) = measured {
        (link.bandwidth_gb_per_s, link.latency_us) = (gb_per_s, latency_us);
        link.assumed = None;
    }
}

/// What the largest measured block reached.
fn reached_tflops(cost: &ExpertCost) -> Option<f64> {
    let last = cost.measured.last()?;
    Some(f64::from(last.tokens) * shape(cost).flop_per_token() / last.took_us * 1e-6)
}

/// At what rate the weights of an expert with one token were read.
fn reached_gb_per_s(cost: &ExpertCost) -> Option<f64> {
    let first = cost.measured.first()?;
    Some(shape(cost).bytes as f64 * 1e-3 / first.took_us)
}

fn shape(cost: &ExpertCost) -> ExpertShape {
    ExpertShape::new(cost.hidden, cost.intermediate, cost.bits_per_weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_cost::calibration::{KernelWay, MeasuredPoint, WeightLayout};
    use motley_ggml::{DeviceInfo, DeviceType};
    use std::path::Path;

    fn expert() -> ExpertCost {
        ExpertCost {
            quantisation: "f16".into(),
            bits_per_weight: 16.0,
            layout: WeightLayout::Plain,
            way: KernelWay::Whole,
            threads: 1,
            block_us: 7.0,
            launch_us: 0.0,
            us_per_mb: 1.0,
            us_per_mflop: 0.1,
            residuals: Default::default(),
            other_shape_relative: None,
            other_shape_points_relative: None,
            hidden: 1000,
            intermediate: 1000,
            measured: vec![
                MeasuredPoint { tokens: 1, took_us: 60.0 },
                MeasuredPoint { tokens: 100, took_us: 300.0 },
            ],
        }
    }

    #[test]
    fn a_gpu_comes_with_its_measured_costs_and_the_rest_stays_assumed() {
        let gpu = |name: &str| DeviceInfo {
            name: name.into(),
            description: "NVIDIA L4".into(),
            kind: DeviceType::Gpu,
            free_bytes: 24 << 30,
            total_bytes: 24 << 30,
        };
        let root = tempfile::tempdir().unwrap();
        let gpus = [gpu("CUDA0"), gpu("CUDA1")];
        let described = crate::describe::describe(root.path(), Path::new("/"), &gpus);
        let run = Run {
            date: "2026-01-31T12:00:00Z".into(),
            program: "motley".into(),
            cpu: "Some CPU".into(),
            cores: 2,
            instructions: vec![],
            load_one_min: None,
            took_s: 1.0,
            quick: false,
        };
        let link = LinkCost {
            from: GGML_CPU.into(),
            to: "CUDA0".into(),
            latency_us: 9.0,
            gb_per_s: 21.0,
            residuals: Default::default(),
        };
        let results = Results {
            run: &run,
            memory: &[MemoryRate { threads: 2, gb_per_s: 20.0 }],
            disk: None,
            links: &[link],
            experts: &[expert()],
            devices: &[DeviceCost { name: "CUDA0".into(), experts: vec![expert()] }],
        };
        let found = with_measured(described, &results);
        let text = toml::to_string(&found).unwrap();
        assert_eq!(Machine::parse(&text, "measured").unwrap(), found);
        assert_eq!(found.device(CPU).unwrap().bandwidth_gb_per_s, 20.0);
        let [first, second] = ["CUDA0", "CUDA1"].map(|name| found.device(name).unwrap());
        // Three matrices of 10⁶ weights of two bytes in 60 us; 100 tokens of 6 MFLOP in 300 us.
        assert_eq!((first.bandwidth_gb_per_s, first.compute_tflops), (100.0, 2.0));
        assert_eq!((first.launch_us, &first.assumed), (7.0, &None));
        assert_eq!(first.memory_bytes(), 24 << 30);
        assert!(second.assumed.is_some());
        let ways = [("cpu", "CUDA0"), ("CUDA0", "cpu")].map(|(a, b)| found.link(a, b).unwrap());
        assert_eq!((ways[0].bandwidth_gb_per_s, ways[0].latency_us), (21.0, 9.0));
        assert!(ways[0].assumed.is_none() && ways[1].assumed.is_some());
    }
}
