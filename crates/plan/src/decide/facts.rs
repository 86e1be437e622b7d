//! What is known before a run: the model, the machine, what was measured on it. Gathered by a
//! door; a machine that is only described has its facts from the description.

use motley_cost::calibration::CalibrationFile;
use motley_machine::{Device, DeviceKind, Machine};
use motley_profile::Profile;

use crate::budget::MachineMemory;
use crate::cores::{MachineCores, ThreadSets};
use crate::kernels::OfferedLayouts;
use crate::needs::ModelNeeds;

/// The facts.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub model: &'a ModelNeeds,
    pub machine: &'a Machine,
    /// What work costs here, where it was measured; else costs follow from the description.
    pub measured: Option<&'a CalibrationFile>,
    /// The model's routing, where known.
    pub profile: Option<&'a Profile>,
    /// RAM at this moment; `None` where the system does not say.
    pub memory: Option<MachineMemory>,
    pub gpus: &'a [GpuFact],
    pub cores: &'a MachineCores,
    /// Layouts the CPU computes the model's routed experts in, by type, the type with most bytes
    /// first; empty where nobody can say.
    pub layouts: &'a [OfferedLayouts],
    /// What `tune` found for this model here.
    pub tuned: Option<&'a ThreadSets>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFact {
    pub name: String,
    /// Memory nobody uses now.
    pub free_bytes: u64,
    /// Whether its memory is not the CPU's.
    pub own_memory: bool,
    /// The CPU behind the code of a GPU: for tests, and to see the hybrid regime without one.
    pub stands_in: bool,
}

/// What the facts of a machine that is only described borrow.
#[derive(Debug, Clone)]
pub struct Described<'a> {
    machine: &'a Machine,
    gpus: Vec<GpuFact>,
    cores: MachineCores,
}

impl<'a> Described<'a> {
    /// All its GPUs and cores.
    pub fn of(machine: &'a Machine) -> Self {
        Self { machine, gpus: described_gpus(machine), cores: MachineCores::described(machine) }
    }

    /// Of `model`, whose routing nobody recorded: nothing is measured or tuned.
    pub fn facts(&'a self, model: &'a ModelNeeds) -> Facts<'a> {
        Facts {
            model,
            machine: self.machine,
            measured: None,
            profile: None,
            memory: described_memory(self.machine),
            gpus: &self.gpus,
            cores: &self.cores,
            layouts: &[],
            tuned: None,
        }
    }
}

/// The GPUs of a description.
pub fn described_gpus(machine: &Machine) -> Vec<GpuFact> {
    let gpus = machine.devices.iter().filter(|device| device.kind == DeviceKind::Gpu);
    let each = |gpu: &Device| {
        let name = |index: u32| {
            if gpu.count > 1 { format!("{}{index}", gpu.name) } else { gpu.name.clone() }
        };
        let own_memory = gpu.shares_memory_of.is_none();
        let shared = || machine.first(DeviceKind::Cpu).map_or(0, Device::total_memory_bytes);
        let free_bytes = if own_memory { gpu.memory_bytes() } else { shared() };
        let fact = |index| GpuFact { name: name(index), free_bytes, own_memory, stands_in: false };
        (0..gpu.count).map(fact).collect::<Vec<_>>()
    };
    gpus.flat_map(each).collect()
}

/// The RAM of a description, all of it free.
pub fn described_memory(machine: &Machine) -> Option<MachineMemory> {
    let bytes = machine.first(DeviceKind::Cpu).map(Device::total_memory_bytes)?;
    Some(MachineMemory { total_bytes: bytes, available_bytes: bytes, ..MachineMemory::default() })
}
