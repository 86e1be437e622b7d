//! What comes of the wishes for a model on this machine: `motley_plan::decide` decides, with facts
//! that are the same as those of `motley run`. Devices are the host's own, and dense work is its
//! business.

use motley_calibrate::describe::this_machine;
use motley_calibrate::library;
use motley_engine::hosted::HostedOptions;
use motley_engine::threads::cores::machine_cores;
use motley_engine::{
    DeviceOptions, DeviceRoom, GpuDevice, Runtime, StreamingOptions, gpu_devices, machine_memory,
    offered_layouts, process_memory,
};
use motley_model::ModelSpec;
use motley_plan::budget::{Budget, TooLittleMemory};
use motley_plan::decide::error::DecideError;
use motley_plan::{
    Asked, Decision, DevicesAsked, Facts, HostedDecision, ModelNeeds, decide_hosted,
};
use std::path::Path;

/// Why a model is left to the host although somebody asked for more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Undecided {
    #[error(transparent)]
    Decide(DecideError),
    /// The flags that help are the host's.
    #[error(
        "{} MiB are too little: it needs at least {} MiB (MOTLEY_MEMORY; a smaller context, `-c`, \
         or chunk, `-ub`, helps)",
        .0.given_bytes >> 20,
        (.0.needed_bytes >> 20) + 1
    )]
    Memory(#[from] TooLittleMemory),
    #[error("this host has no device `{name}`; MOTLEY_DEVICES takes {known}")]
    UnknownDevice { name: String, known: String },
}

impl From<DecideError> for Undecided {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Memory(too_little) => Self::Memory(too_little),
            other => Self::Decide(other),
        }
    }
}

/// What is to be done with a model.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) decision: Decision,
    /// The host's devices that share its experts, and how much of each.
    pub(crate) devices: Vec<(GpuDevice, Option<u64>)>,
    /// Whether its experts are taken; else the host keeps them.
    pub(crate) takes: bool,
}

/// Chooses for the model at `path`; other models of this process have `others_bytes`.
pub(crate) fn choose(
    runtime: &Runtime,
    path: &Path,
    spec: &ModelSpec,
    asked: &Asked,
    others_bytes: u64,
) -> Result<Choice, Undecided> {
    let devices = devices(runtime, &asked.devices)?;
    let measured = library::for_model(spec).map(|(_, table)| table);
    let machine = match &measured {
        Some(table) => table.machine.clone(),
        None => this_machine(runtime, Some(path)),
    };
    let needs = ModelNeeds::of(spec);
    let memory = machine_memory().map(|mut memory| {
        memory.others_bytes = others_bytes;
        memory
    });
    let facts = Facts {
        model: &needs,
        machine: &machine,
        measured: measured.as_ref(),
        profile: None,
        memory,
        gpus: &[],
        cores: &machine_cores(),
        layouts: &offered_layouts(runtime, spec),
        tuned: None,
    };
    let HostedDecision { decision, takes } = decide_hosted(&facts, asked, !devices.is_empty())?;
    Ok(Choice { decision, devices, takes })
}

/// The host's GPUs that were asked for; all with memory of their own when nobody says.
fn devices(
    runtime: &Runtime,
    asked: &DevicesAsked,
) -> Result<Vec<(GpuDevice, Option<u64>)>, Undecided> {
    let all = gpu_devices(runtime);
    let named = match asked {
        DevicesAsked::Cpu => return Ok(Vec::new()),
        DevicesAsked::Auto => {
            let own = all.into_iter().filter(GpuDevice::has_own_memory);
            return Ok(own.map(|device| (device, None)).collect());
        }
        DevicesAsked::Named(named) => named,
    };
    let find = |wanted: &motley_plan::NamedDevice| {
        let same = |device: &&GpuDevice| device.info().name.eq_ignore_ascii_case(&wanted.name);
        match all.iter().find(same) {
            Some(device) => Ok((device.clone(), wanted.most_bytes)),
            None => Err(Undecided::UnknownDevice { name: wanted.name.clone(), known: known(&all) }),
        }
    };
    named.iter().map(find).collect()
}

fn known(devices: &[GpuDevice]) -> String {
    let names = devices.iter().map(|device| device.info().name.to_lowercase());
    names.chain(["auto".into(), "cpu".into()]).collect::<Vec<_>>().join(", ")
}

impl Choice {
    /// As the executor takes it, now that the host's context is there: its KV cache and buffers
    /// are counted as they are.
    pub(crate) fn options(&self) -> Result<HostedOptions, Undecided> {
        let decision = &self.decision;
        let streaming = StreamingOptions { rules: decision.rules, ..StreamingOptions::default() };
        let rooms: Vec<DeviceRoom> = self
            .devices
            .iter()
            .map(|(device, most)| DeviceRoom { device: device.clone(), budget_bytes: *most })
            .collect();
        Ok(HostedOptions {
            slots: slots(&decision.budget, decision.memory_bytes)?,
            memory_bytes: decision.memory_bytes,
            streaming,
            devices: (!rooms.is_empty()).then(|| DeviceOptions::over(rooms)),
            kernels: decision.kernels.clone(),
        })
    }
}

/// Experts that have room beside what the process holds already.
fn slots(budget: &Budget, memory_bytes: Option<u64>) -> Result<u32, TooLittleMemory> {
    let Some(memory_bytes) = memory_bytes else { return Ok(budget.experts + 1) };
    budget.with_held(held_bytes()).slots(memory_bytes)
}

/// What the process holds of its own: KV cache, buffers, weights it has rearranged.
fn held_bytes() -> u64 {
    process_memory::of_self(Path::new("/")).map_or(0, |memory| memory.anon_bytes)
}
