//! Whole machines as descriptions, from the fixtures of `host`; and this one.

use std::path::Path;

use expect_test::{Expect, expect};
use motley_calibrate::describe::{describe, this_machine};
use motley_ggml::{DeviceInfo, DeviceType, Runtime, Seam};
use motley_machine::{Device, DeviceKind, Machine};
use motley_testkit::machine_tree::Tree;

fn gpu(name: &str, description: &str, kind: DeviceType, gib: u64) -> DeviceInfo {
    let bytes = gib << 30;
    let (name, description) = (name.into(), description.into());
    DeviceInfo { name, description, kind, free_bytes: bytes, total_bytes: bytes }
}

/// One line for the machine and each of its parts.
fn page(machine: &Machine) -> String {
    let mut text = format!("{}\n", machine.summary);
    let device = |d: &Device| {
        let label = d.label.as_deref().unwrap_or("?");
        let shares = d.shares_memory_of.as_ref().map_or(String::new(), |of| format!(" of {of}"));
        format!(
            "{} {:?} \"{label}\" {:.0} GiB{shares} {:.1} GB/s {:.2} TFLOPS\n",
            d.name, d.kind, d.memory_gib, d.bandwidth_gb_per_s, d.compute_tflops
        )
    };
    text += &machine.devices.iter().map(device).collect::<String>();
    for link in &machine.links {
        text += &format!("{} -> {} {:.2} GB/s\n", link.from, link.to, link.bandwidth_gb_per_s);
    }
    for node in &machine.nodes {
        text += &format!("node {} {:.0} GiB {} cores\n", node.id, node.memory_gib, node.cores);
    }
    text
}

fn check(machine: &Machine, expected: Expect) {
    expected.assert_eq(&page(machine));
    // It reads back as a file, and says of every rate that it is assumed.
    let text = toml::to_string(machine).unwrap();
    assert_eq!(&Machine::parse(&text, "described").unwrap(), machine);
    let assumed = |why: &Option<String>| why.as_ref().is_some_and(|why| why.contains("assumed"));
    assert!(machine.devices.iter().all(|device| assumed(&device.assumed)), "{text}");
    assert!(machine.links.iter().all(|link| assumed(&link.assumed)), "{text}");
}

#[test]
fn a_laptop_with_a_gpu() {
    let tree = Tree::fixture("hybrid-laptop");
    let gpus = [
        gpu("Vulkan0", "Intel(R) Arc(tm) Graphics", DeviceType::IntegratedGpu, 15),
        gpu("Vulkan1", "NVIDIA GeForce RTX 4060 Laptop GPU", DeviceType::Gpu, 8),
    ];
    let machine = describe(tree.root(), Path::new("/models/x.gguf"), &gpus);
    check(
        &machine,
        expect![[r#"
        Intel(R) Core(TM) Ultra 7 155H, 16 cores, 31 GiB of RAM, NVIDIA GeForce RTX 4060 Laptop GPU, Intel(R) Arc(tm) Graphics; rates are assumed
        cpu Cpu "Intel(R) Core(TM) Ultra 7 155H" 31 GiB 88.0 GB/s 1.53 TFLOPS
        Vulkan1 Gpu "NVIDIA GeForce RTX 4060 Laptop GPU" 8 GiB 250.0 GB/s 20.00 TFLOPS
        Vulkan0 Gpu "Intel(R) Arc(tm) Graphics" 0 GiB of cpu 88.0 GB/s 2.00 TFLOPS
        npu0 Npu "Intel intel_vpu" 0 GiB of cpu 88.0 GB/s 5.00 TFLOPS
        disk Disk "Example 1TB NVMe (NVMe)" 954 GiB 2.0 GB/s 0.00 TFLOPS
        cpu -> Vulkan1 12.60 GB/s
        Vulkan1 -> cpu 12.60 GB/s
        disk -> cpu 2.00 GB/s
    "#]],
    );
    assert_eq!(machine.clusters.len(), 3);
    assert_eq!(machine.first(DeviceKind::Gpu).unwrap().name, "Vulkan1");
    let archive = describe(tree.root(), Path::new("/archive/x.gguf"), &[]);
    assert_eq!(archive.device("disk").unwrap().bandwidth_gb_per_s, 0.15);
}

#[test]
fn a_workstation_of_two_nodes() {
    let tree = Tree::fixture("two-socket-server");
    let gpus = ["CUDA0", "CUDA1"].map(|name| gpu(name, "NVIDIA L4", DeviceType::Gpu, 24));
    check(
        &describe(tree.root(), Path::new("/models/x.gguf"), &gpus),
        expect![[r#"
        Intel(R) Xeon(R) Gold 6430, 64 cores, 503 GiB of RAM, NVIDIA L4, NVIDIA L4; rates are assumed
        cpu Cpu "Intel(R) Xeon(R) Gold 6430" 503 GiB 304.0 GB/s 8.40 TFLOPS
        CUDA0 Gpu "NVIDIA L4" 24 GiB 250.0 GB/s 20.00 TFLOPS
        CUDA1 Gpu "NVIDIA L4" 24 GiB 250.0 GB/s 20.00 TFLOPS
        disk Disk "nvme0n1 (NVMe)" 3577 GiB 2.0 GB/s 0.00 TFLOPS
        cpu -> CUDA0 12.00 GB/s
        CUDA0 -> cpu 12.00 GB/s
        cpu -> CUDA1 12.00 GB/s
        CUDA1 -> cpu 12.00 GB/s
        disk -> cpu 2.00 GB/s
        node 0 251 GiB 32 cores
        node 1 252 GiB 32 cores
    "#]],
    );
}

#[test]
fn a_virtual_machine() {
    let tree = Tree::fixture("small-vm");
    check(
        &describe(tree.root(), Path::new("/x.gguf"), &[]),
        expect![[r#"
        Intel(R) Xeon(R) Processor, 2 cores, 24 GiB of RAM; rates are assumed
        cpu Cpu "Intel(R) Xeon(R) Processor" 24 GiB 20.0 GB/s 0.16 TFLOPS
        disk Disk "vda (virtual disk)" 60 GiB 1.0 GB/s 0.00 TFLOPS
        disk -> cpu 1.00 GB/s
    "#]],
    );
}

#[test]
fn this_machine_is_a_valid_description_of_what_it_has() {
    let runtime = Runtime::start(Seam::Registered).unwrap();
    let machine = this_machine(&runtime, Some(Path::new(env!("CARGO_MANIFEST_DIR"))));
    assert_eq!(Machine::parse(&toml::to_string(&machine).unwrap(), "this").unwrap(), machine);
    let cpu = machine.device("cpu").unwrap();
    assert!(cpu.memory_bytes() > 1 << 28 && cpu.compute_tflops > 0.0, "{machine:?}");
}
