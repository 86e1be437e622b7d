//! The nouns of a machine file. Plain data; every number carries its unit in its name.
//!
//! `gb` is 10^9 bytes (rates are quoted so), `gib` is 2^30 bytes (capacities are sold so).

use serde::{Deserialize, Serialize};

/// One computer, phone or simulated system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Format version of the file; see [`crate::error::FORMAT_VERSION`].
    pub version: u32,
    /// Name by which commands find it.
    pub name: String,
    /// One line for listings.
    pub summary: String,
    /// How far the numbers can be trusted.
    pub provenance: Provenance,
    /// Everything that computes or stores.
    #[serde(rename = "device")]
    pub devices: Vec<Device>,
    /// How bytes move between devices. Empty on a machine with one memory.
    #[serde(rename = "link", default)]
    pub links: Vec<Link>,
    /// CPU cores by cluster, biggest first (A2 walks them in this order).
    #[serde(rename = "cluster", default)]
    pub clusters: Vec<CoreCluster>,
    /// Memory nodes (NUMA), where a CPU has more than one.
    #[serde(rename = "node", default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<MemoryNode>,
    /// Coefficients of the power heuristic (A3), where known.
    #[serde(default)]
    pub power: Option<Power>,
}

/// Where a description comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Vendor data sheets or a paper's table: peaks, never reached in practice.
    Published,
    /// A class of machines, put together from typical parts.
    Typical,
    /// One real machine, described before it was measured.
    Estimated,
    /// Measured on the machine itself.
    Measured,
}

/// What a device is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// Cores with the main memory.
    Cpu,
    /// Graphics processor, with memory of its own or sharing the CPU's.
    Gpu,
    /// Static-graph accelerator (N).
    Npu,
    /// Compute beside a memory module (G): an NDP-DIMM, or a stand-in for it.
    NearData,
    /// Storage only: `compute_tflops` is 0.
    Disk,
}

impl DeviceKind {
    /// Whether the device can run an expert at all.
    pub fn computes(self) -> bool {
        self != Self::Disk
    }
}

/// Something that computes, stores, or both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Unique within the machine; links and clusters refer to it.
    pub name: String,
    /// What it is good for.
    pub kind: DeviceKind,
    /// The hardware's own name, for people, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Says in words where the rates come from when nobody measured or published them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed: Option<String>,
    /// How many identical ones there are.
    #[serde(default = "one")]
    pub count: u32,
    /// Memory of one device. Devices that share another's memory say so in `shares_memory_of`.
    #[serde(default)]
    pub memory_gib: f64,
    /// Name of the device whose memory this one uses (unified memory); it then has none itself.
    #[serde(default)]
    pub shares_memory_of: Option<String>,
    /// Peak of one device in the precision its experts run at, multiply and add counted as two.
    pub compute_tflops: f64,
    /// Peak rate at which one device reads its memory (for a disk: sequential read).
    pub bandwidth_gb_per_s: f64,
    /// Fixed cost of starting one expert's work (for a disk: of one read).
    pub launch_us: f64,
    /// Draw of one device at rest, where known.
    #[serde(default)]
    pub idle_w: Option<f64>,
    /// Draw of one device under full load, where known.
    #[serde(default)]
    pub busy_w: Option<f64>,
}

fn one() -> u32 {
    1
}

impl Device {
    /// Memory of one device.
    pub fn memory_bytes(&self) -> u64 {
        gib_bytes(self.memory_gib)
    }

    /// Memory of all `count` devices.
    pub fn total_memory_bytes(&self) -> u64 {
        self.memory_bytes().saturating_mul(u64::from(self.count))
    }
}

/// A way for bytes from one device's memory to another's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Device the bytes come from.
    pub from: String,
    /// Device the bytes go to.
    pub to: String,
    /// Rate in this direction.
    pub bandwidth_gb_per_s: f64,
    /// Fixed cost of one transfer.
    pub latency_us: f64,
    /// Links naming the same bus share its bandwidth; a link without one has its own.
    #[serde(default)]
    pub bus: Option<String>,
    /// Says in words where the rate comes from when nobody measured or published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed: Option<String>,
}

/// Identical CPU cores that share a frequency domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreCluster {
    /// Core name, for people.
    pub name: String,
    /// The CPU device it belongs to.
    pub device: String,
    /// What the cluster is for.
    pub role: CoreRole,
    pub cores: u32,
    pub max_ghz: f64,
    /// `a_i` of A3: scale of the cluster's power over frequency squared, relative to the biggest.
    #[serde(default = "unit_scale")]
    pub power_scale: f64,
    /// Work per time of one core beside the machine's fastest at 1, where the system tells it
    /// (`cpu_capacity`); else it is guessed from role and frequency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
}

fn unit_scale() -> f64 {
    1.0
}

/// Memory with the cores near it. The memory of all nodes of a device is the device's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryNode {
    /// The system's number of it.
    pub id: u32,
    /// The CPU device it belongs to.
    pub device: String,
    /// Memory of this node.
    pub memory_gib: f64,
    /// Cores near it; none where a node is memory only.
    pub cores: u32,
}

impl MemoryNode {
    /// Its memory.
    pub fn memory_bytes(&self) -> u64 {
        gib_bytes(self.memory_gib)
    }
}

fn gib_bytes(gib: f64) -> u64 {
    (gib * (1u64 << 30) as f64).round() as u64
}

/// The three classes of A2; efficiency cores are left out of decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreRole {
    /// The fastest core or cores.
    Prime,
    /// Big cores below prime.
    Performance,
    /// Small cores.
    Efficiency,
}

/// Coefficients of `h(I)` (A3) that belong to the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// `b`: weight of an unselected core beside a selected one, 0 to 1.
    pub idle_core_factor: f64,
    /// `P_s`: draw that no selection changes.
    pub static_w: f64,
    /// Battery charge, for devices that have one.
    #[serde(default)]
    pub battery_mah: Option<f64>,
}

impl Machine {
    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The first device of that kind.
    pub fn first(&self, kind: DeviceKind) -> Option<&Device> {
        self.devices.iter().find(|device| device.kind == kind)
    }

    /// The link between two devices, in that direction.
    pub fn link(&self, from: &str, to: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.from == from && link.to == to)
    }
}
