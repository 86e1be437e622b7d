//! This machine in the words of a machine file, before anything is measured: what `host` reads
//! and the GPUs ggml lists. Rates that nobody measured are assumed, and say so.
//!
//! * `assumed`: the generic rates, each with its reason.
//! * `measured`: the same description with what a calibration found in place of assumptions.

mod assumed;
mod measured;

use std::path::Path;

use motley_ggml::gpu::gpu_devices;
use motley_ggml::{DeviceInfo, DeviceType, Runtime};
use motley_host::accelerators::{self, Accelerator, AcceleratorKind};
use motley_host::topology::{self, Topology};
use motley_host::{cpu_name, disk, memory};
use motley_machine::error::FORMAT_VERSION;
use motley_machine::{Device, DeviceKind, Link, Machine, Provenance};

use measured::{CPU, DISK};
#[cfg(feature = "llama")]
pub(crate) use measured::{Results, with_measured};

const GIB: f64 = (1_u64 << 30) as f64;

/// The machine this runs on, with the disk that holds `path` (by default the root folder's).
pub fn this_machine(runtime: &Runtime, path: Option<&Path>) -> Machine {
    let gpus: Vec<_> = gpu_devices(runtime).iter().map(|gpu| gpu.info().clone()).collect();
    let path = path.unwrap_or(Path::new("/"));
    let path = path.canonicalize().unwrap_or_else(|_| path.into());
    describe(Path::new("/"), &path, &gpus)
}

/// The machine whose files are below `root`: `path` is absolute and without links as that machine
/// sees it, `gpus` are those ggml can use there.
pub fn describe(root: &Path, path: &Path, gpus: &[DeviceInfo]) -> Machine {
    let topology = topology::read(root);
    let cpu = cpu(root, topology.as_ref());
    let shown = accelerators::read(root);
    let mut machine = Machine {
        version: FORMAT_VERSION,
        name: "this machine".into(),
        summary: String::new(),
        provenance: Provenance::Estimated,
        devices: vec![cpu],
        links: Vec::new(),
        clusters: topology.as_ref().map_or(vec![], |t| t.machine_clusters(CPU, assumed::GHZ)),
        nodes: topology.as_ref().map_or(vec![], |t| t.machine_nodes(CPU)),
        power: None,
    };
    add_gpus(&mut machine, gpus, &shown);
    add_npus(&mut machine, &shown);
    add_disk(&mut machine, root, path);
    machine.summary = summary(&machine, core_count(topology.as_ref()));
    machine
}

/// Cores of the machine; logical CPUs where its cores are not known.
pub(crate) fn core_count(topology: Option<&Topology>) -> usize {
    let parallelism = || std::thread::available_parallelism().map_or(1, usize::from);
    topology.map_or_else(parallelism, Topology::cores)
}

fn cpu(root: &Path, topology: Option<&Topology>) -> Device {
    let nodes = match topology.filter(|t| t.nodes.len() > 1) {
        Some(t) => t.nodes.iter().map(|node| t.cores_near(node)).collect(),
        None => vec![core_count(topology)],
    };
    let rates = assumed::cpu(topology, &nodes, cpu_name::has_flag(root, "avx2"));
    Device {
        label: cpu_name::read(root),
        memory_gib: memory::read(root).map_or(0.0, |memory| memory.total_bytes as f64 / GIB),
        ..device(CPU, DeviceKind::Cpu, rates)
    }
}

/// GPUs with memory of their own first: the first of a kind is the one simple callers use.
fn add_gpus(machine: &mut Machine, gpus: &[DeviceInfo], shown: &[Accelerator]) {
    let memory_gb_per_s = machine.devices[0].bandwidth_gb_per_s;
    let mut cards: Vec<&Accelerator> =
        shown.iter().filter(|card| card.kind == AcceleratorKind::Gpu).collect();
    let (own, shared): (Vec<_>, Vec<_>) = gpus.iter().partition(|gpu| gpu.kind == DeviceType::Gpu);
    for gpu in own {
        let label = (!gpu.description.is_empty()).then(|| gpu.description.clone());
        let memory_gib = gpu.total_bytes as f64 / GIB;
        let found = device(&gpu.name, DeviceKind::Gpu, assumed::own_gpu());
        machine.devices.push(Device { label, memory_gib, ..found });
        let way = assumed::gpu_link(card_of(gpu, &mut cards).and_then(|card| card.pcie));
        machine.links.push(link(CPU, &gpu.name, &way));
        machine.links.push(link(&gpu.name, CPU, &way));
    }
    for gpu in shared {
        let rates = assumed::shared_gpu(memory_gb_per_s);
        let label = (!gpu.description.is_empty()).then(|| gpu.description.clone());
        let found = device(&gpu.name, DeviceKind::Gpu, rates);
        let owner = Some(CPU.to_owned());
        machine.devices.push(Device { label, shares_memory_of: owner, ..found });
    }
}

/// The card behind one of ggml's GPUs: the next of the vendor its name begins with. ggml and the
/// kernel both list cards of one vendor in the order of their PCI addresses.
fn card_of<'a>(gpu: &DeviceInfo, cards: &mut Vec<&'a Accelerator>) -> Option<&'a Accelerator> {
    let is_of = |card: &&Accelerator| card.vendor.is_some_and(|v| gpu.description.contains(v));
    let index = cards.iter().position(is_of)?;
    Some(cards.remove(index))
}

/// NPUs the kernel shows; they use the CPU's memory.
fn add_npus(machine: &mut Machine, shown: &[Accelerator]) {
    let memory_gb_per_s = machine.devices[0].bandwidth_gb_per_s;
    let npus = shown.iter().filter(|card| card.kind == AcceleratorKind::Npu);
    for (index, npu) in npus.enumerate() {
        let words: Vec<&str> = npu.vendor.into_iter().chain(npu.driver.as_deref()).collect();
        let rates = assumed::npu(memory_gb_per_s);
        machine.devices.push(Device {
            label: (!words.is_empty()).then(|| words.join(" ")),
            shares_memory_of: Some(CPU.to_owned()),
            ..device(&format!("npu{index}"), DeviceKind::Npu, rates)
        });
    }
}

fn add_disk(machine: &mut Machine, root: &Path, path: &Path) {
    let Some(found) = disk::of_path(root, path) else { return };
    let (rates, way) = assumed::disk(found.kind);
    let name = found.model.or(found.device);
    machine.devices.push(Device {
        label: Some(name.map_or_else(
            || found.kind.name().to_owned(),
            |name| format!("{name} ({})", found.kind.name()),
        )),
        memory_gib: found.size_bytes.map_or(0.0, |bytes| bytes as f64 / GIB),
        ..device(DISK, DeviceKind::Disk, rates)
    });
    machine.links.push(link(DISK, CPU, &way));
}

fn summary(machine: &Machine, cores: usize) -> String {
    let cpu = &machine.devices[0];
    let name = cpu.label.as_deref().unwrap_or("unknown processor");
    let mut text = format!("{name}, {cores} cores, {:.0} GiB of RAM", cpu.memory_gib);
    for gpu in machine.devices.iter().filter(|device| device.kind == DeviceKind::Gpu) {
        text += &format!(", {}", gpu.label.as_deref().unwrap_or(&gpu.name));
    }
    text + "; rates are assumed"
}

fn device(name: &str, kind: DeviceKind, rates: assumed::Rates) -> Device {
    Device {
        name: name.into(),
        kind,
        label: None,
        assumed: Some(rates.why),
        count: 1,
        memory_gib: 0.0,
        shares_memory_of: None,
        compute_tflops: rates.compute_tflops,
        bandwidth_gb_per_s: rates.gb_per_s,
        launch_us: rates.launch_us,
        idle_w: None,
        busy_w: None,
    }
}

fn link(from: &str, to: &str, way: &assumed::Way) -> Link {
    Link {
        from: from.into(),
        to: to.into(),
        bandwidth_gb_per_s: way.gb_per_s,
        latency_us: way.latency_us,
        bus: None,
        assumed: Some(way.why.clone()),
    }
}
