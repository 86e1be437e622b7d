//! `--devices`: which devices share the experts with the CPU, and what they are used for. Looks at
//! what llama.cpp was built with; `plan` says what goes there.

use crate::args::{LoadArgs, parse_size};
use crate::load::session_options;
use anyhow::{Result, anyhow, bail};
use indicatif::HumanBytes;
use motley_engine::{
    DeviceRoom, EngineOptions, GpuDevice, HybridOptions, LayerGpu, Loading, Runtime,
    SessionOptions, gpu_devices,
};
use motley_model::ModelSpec;
use motley_plan::budget::Budget;
use motley_plan::device_use::DeviceUse;

/// The CPU behind the code of a GPU: for tests, and to see the hybrid regime without one.
const STAND_IN: &str = "stand-in";
/// llama.cpp counts layers, and takes more for all.
const ALL_LAYERS: u32 = 1 << 16;

/// A device that was asked for, and the most it is to give.
struct Wanted {
    device: GpuDevice,
    most_bytes: Option<u64>,
    stands_in: bool,
}

/// Puts the wanted devices into `options`; a few words on what they are used for, if they are.
pub(crate) fn apply(
    runtime: &Runtime,
    wanted: &str,
    spec: &ModelSpec,
    load: &LoadArgs,
    options: &mut EngineOptions,
) -> Result<Option<String>> {
    let found = find(runtime, wanted)?;
    if found.is_empty() {
        return Ok(None);
    }
    // llama.cpp takes buffers on a device whole: with room for every token's logits.
    let shape = SessionOptions { scores: true, ..session_options(load) }.shape();
    let budget = Budget::of(spec, shape);
    let rooms: Vec<u64> = found.iter().map(|wanted| wanted.room(&budget, found.len())).collect();
    let (stands_in, streams) =
        (found.iter().any(|wanted| wanted.stands_in), options.loading != Loading::Mapped);
    let usage = match (stands_in, streams) {
        (true, true) => bail!(
            "{STAND_IN} cannot share experts that stay on disk; leave out --memory, or --devices"
        ),
        (true, false) => DeviceUse::Experts { expert_bytes: rooms.iter().sum() },
        (false, true) => DeviceUse::of_streamed(&budget, &rooms),
        (false, false) => DeviceUse::of(&budget, spec.used, &rooms),
    };
    if usage == DeviceUse::Nothing && !wanted.eq_ignore_ascii_case("auto") {
        let (given, least) =
            (HumanBytes(rooms.iter().sum()), DeviceUse::least_bytes(&budget, spec.used, streams));
        bail!(
            "--devices {wanted}: {given} of memory there are too little for this model, which \
             needs {}; leave it out, or give more",
            HumanBytes(least)
        );
    }
    let all_bytes = u64::from(budget.experts) * budget.slot_bytes;
    Ok(use_devices(&found, &rooms, usage, all_bytes, options))
}

impl Wanted {
    /// Memory it gives. Stand-ins together have half of the experts if nothing else is said.
    fn room(&self, budget: &Budget, devices: usize) -> u64 {
        let half = u64::from(budget.experts / 2) * budget.slot_bytes / devices as u64;
        match self.stands_in {
            true => self.most_bytes.unwrap_or(half),
            false => self.device.budget_bytes(0).min(self.most_bytes.unwrap_or(u64::MAX)),
        }
    }
}

fn use_devices(
    found: &[Wanted],
    rooms: &[u64],
    usage: DeviceUse,
    all_bytes: u64,
    options: &mut EngineOptions,
) -> Option<String> {
    let of_experts = |bytes: u64| HumanBytes(bytes.min(all_bytes));
    let names: Vec<_> = found.iter().map(|wanted| wanted.device.info().name.as_str()).collect();
    let names = names.join(" and ");
    let all: u64 = rooms.iter().sum();
    let gpus = found.iter().zip(rooms).map(|(wanted, &room)| LayerGpu {
        device: wanted.device.clone(),
        part: (room as f64 / all.max(1) as f64) as f32,
    });
    // Experts divide as the rooms do.
    let shared = |expert_bytes: u64| {
        let device = |(wanted, &room): (&Wanted, &u64)| {
            let bytes = u128::from(expert_bytes) * u128::from(room) / u128::from(all.max(1));
            DeviceRoom { device: wanted.device.clone(), budget_bytes: Some(bytes as u64) }
        };
        HybridOptions::over(found.iter().zip(rooms).map(device).collect())
    };
    match usage {
        DeviceUse::Everything => {
            (options.gpus, options.gpu_layers) = (gpus.collect(), ALL_LAYERS);
            options.gpu_experts = true;
            Some(format!("all on {names}"))
        }
        DeviceUse::DenseAndExperts { expert_bytes } => {
            (options.gpus, options.gpu_layers) = (gpus.collect(), ALL_LAYERS);
            let mut hybrid = shared(expert_bytes);
            // What is really left is known when dense weights and the KV cache are there.
            let unlimited = found.iter().map(|wanted| wanted.most_bytes.is_none());
            for (room, _) in hybrid.devices.iter_mut().zip(unlimited).filter(|(_, is)| *is) {
                room.budget_bytes = None;
            }
            options.hybrid = Some(hybrid);
            let size = of_experts(expert_bytes);
            Some(format!("dense weights and {size} of experts on {names}, CPU computes too"))
        }
        DeviceUse::Dense => {
            (options.gpus, options.gpu_layers) = (gpus.collect(), ALL_LAYERS);
            Some(format!("dense weights on {names}"))
        }
        DeviceUse::Experts { expert_bytes } => {
            options.hybrid = Some(shared(expert_bytes));
            let size = of_experts(expert_bytes);
            Some(format!("{size} of experts on {names}, CPU computes too"))
        }
        DeviceUse::Nothing => None,
    }
}

/// The devices of these names: `auto` takes every GPU, `cpu` none.
fn find(runtime: &Runtime, wanted: &str) -> Result<Vec<Wanted>> {
    let gpus = gpu_devices(runtime);
    let mut found = Vec::new();
    for part in wanted.split(',') {
        let (name, most_bytes) = split(part.trim())?;
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let stands_in = is(STAND_IN);
        let devices = match name {
            _ if is("cpu") => Vec::new(),
            _ if is("auto") => usual(&gpus),
            _ if stands_in => vec![GpuDevice::cpu(runtime)],
            _ => vec![named(&gpus, name)?],
        };
        found.extend(devices.into_iter().map(|device| Wanted { device, most_bytes, stands_in }));
    }
    Ok(found)
}

/// Every GPU with memory of its own; without such the first that shares the CPU's.
fn usual(gpus: &[GpuDevice]) -> Vec<GpuDevice> {
    let own: Vec<_> = gpus.iter().filter(|gpu| gpu.has_own_memory()).cloned().collect();
    if own.is_empty() { gpus.first().cloned().into_iter().collect() } else { own }
}

fn named(gpus: &[GpuDevice], name: &str) -> Result<GpuDevice> {
    let found = gpus.iter().find(|gpu| gpu.info().name.eq_ignore_ascii_case(name));
    let Some(found) = found else {
        let names = gpus.iter().map(|gpu| gpu.info().name.to_lowercase());
        let there: Vec<_> = ["auto".into(), "cpu".into()].into_iter().chain(names).collect();
        bail!("no device is called `{name}`; --devices takes {}, {STAND_IN}", there.join(", "));
    };
    Ok(found.clone())
}

/// `NAME` or `NAME=SIZE`.
fn split(wanted: &str) -> Result<(&str, Option<u64>)> {
    let Some((name, size)) = wanted.split_once('=') else { return Ok((wanted, None)) };
    let size = parse_size(size).map_err(|error| anyhow!("--devices {wanted}: {error}"))?;
    Ok((name, Some(size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_follows_the_name() {
        assert_eq!(split("auto").unwrap(), ("auto", None));
        assert_eq!(split("vulkan0=200M").unwrap(), ("vulkan0", Some(200 << 20)));
        let error = split("vulkan0=much").unwrap_err().to_string();
        assert!(error.starts_with("--devices vulkan0=much: "), "{error}");
    }
}
