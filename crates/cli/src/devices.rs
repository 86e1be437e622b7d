//! `--devices`: which device shares the experts with the CPU, and what it is used for. Looks at
//! what llama.cpp was built with; `plan` says what goes there.

use crate::args::{LoadArgs, parse_size};
use crate::load::session_options;
use anyhow::{Result, anyhow, bail};
use indicatif::HumanBytes;
use motley_engine::{
    EngineOptions, GpuDevice, HybridOptions, Loading, Runtime, SessionOptions, gpu_devices,
};
use motley_model::ModelSpec;
use motley_plan::budget::Budget;
use motley_plan::device_use::DeviceUse;

/// The CPU behind the code of a GPU: for tests, and to see the hybrid regime without one.
const STAND_IN: &str = "stand-in";
/// llama.cpp counts layers, and takes more for all.
const ALL_LAYERS: u32 = 1 << 16;

/// Puts the wanted device into `options`; a few words on what it is used for, if it is.
pub(crate) fn apply(
    runtime: &Runtime,
    wanted: &str,
    spec: &ModelSpec,
    load: &LoadArgs,
    options: &mut EngineOptions,
) -> Result<Option<String>> {
    let (wanted, most_bytes) = split(wanted)?;
    let Some(device) = find(runtime, wanted)? else { return Ok(None) };
    let is_named = !wanted.eq_ignore_ascii_case("auto");
    if options.loading != Loading::Mapped {
        let name = &device.info().name;
        if is_named {
            bail!(
                "{name} cannot share experts that stay on disk; leave out --memory, or --devices"
            );
        }
        return Ok(None);
    }
    let stands_in = wanted.eq_ignore_ascii_case(STAND_IN);
    // llama.cpp takes buffers on a device whole: with room for every token's logits.
    let shape = SessionOptions { scores: true, ..session_options(load) }.shape();
    let budget = Budget::of(spec, shape);
    let usage = match stands_in {
        true => {
            let half = u64::from(budget.experts / 2) * budget.slot_bytes;
            DeviceUse::Experts { expert_bytes: most_bytes.unwrap_or(half) }
        }
        false => {
            let device_bytes = device.budget_bytes(0).min(most_bytes.unwrap_or(u64::MAX));
            DeviceUse::of(&budget, spec.used, device_bytes)
        }
    };
    Ok(use_device(device, usage, most_bytes, options))
}

/// `NAME` or `NAME=SIZE`.
fn split(wanted: &str) -> Result<(&str, Option<u64>)> {
    let Some((name, size)) = wanted.split_once('=') else { return Ok((wanted, None)) };
    let size = parse_size(size).map_err(|error| anyhow!("--devices {wanted}: {error}"))?;
    Ok((name, Some(size)))
}

fn use_device(
    device: GpuDevice,
    usage: DeviceUse,
    most_bytes: Option<u64>,
    options: &mut EngineOptions,
) -> Option<String> {
    let name = device.info().name.clone();
    let gpus = vec![device.clone()];
    let share = |budget_bytes| HybridOptions { budget_bytes, ..HybridOptions::new(device) };
    match usage {
        DeviceUse::Everything => {
            (options.gpus, options.gpu_layers, options.gpu_experts) = (gpus, ALL_LAYERS, true);
            Some(format!("all on {name}"))
        }
        DeviceUse::DenseAndExperts { expert_bytes } => {
            (options.gpus, options.gpu_layers) = (gpus, ALL_LAYERS);
            // What is really left is known when dense weights and the KV cache are there.
            options.hybrid = Some(share(most_bytes.map(|_| expert_bytes)));
            let size = HumanBytes(expert_bytes);
            Some(format!("dense weights and {size} of experts on {name}, both compute"))
        }
        DeviceUse::Experts { expert_bytes } => {
            options.hybrid = Some(share(Some(expert_bytes)));
            let size = HumanBytes(expert_bytes);
            Some(format!("{size} of experts on {name}, both compute"))
        }
        DeviceUse::Nothing => None,
    }
}

/// The device of this name; `auto` takes the first GPU, `cpu` none.
fn find(runtime: &Runtime, wanted: &str) -> Result<Option<GpuDevice>> {
    let is = |name: &str| wanted.eq_ignore_ascii_case(name);
    let gpus = gpu_devices(runtime);
    if is("cpu") {
        return Ok(None);
    }
    if is("auto") {
        return Ok(gpus.into_iter().next());
    }
    if is(STAND_IN) {
        return Ok(Some(GpuDevice::cpu(runtime)));
    }
    let names: Vec<_> = gpus.iter().map(|gpu| gpu.info().name.to_lowercase()).collect();
    let Some(found) = gpus.into_iter().find(|gpu| is(&gpu.info().name)) else {
        let there = [&["auto".to_owned(), "cpu".to_owned()][..], &names].concat().join(", ");
        bail!("no device is called `{wanted}`; --devices takes {there}, {STAND_IN}");
    };
    Ok(Some(found))
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
