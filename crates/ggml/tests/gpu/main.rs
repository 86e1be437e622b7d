//! Experts in slots of a device, on real (small) models: ggml's CPU device stands in for a
//! GPU and must give the bits of the plain run; real GPUs, where there are any, must come
//! close.

mod run;

use motley_ggml::gpu::{FillReason, GpuDevice, GpuOptions, GpuUnit, UnitError, gpu_devices};
use motley_ggml::{DeviceType, Runtime, Seam};
use motley_model::{Matrix, TensorPart};
use motley_testkit::synth::Arch;
use run::{Setting, TestModel, Trial, apart, f32_model, model, trial};

const MIB: u64 = 1 << 20;
/// Room for every expert of a test model.
const ROOMY_BYTES: u64 = 256 * MIB;

/// How far the rows of a block's experts may be apart (root mean square, as part of the rows'
/// own) where weights are quantised: the CPU rounds activations to 8 bits per block, twice on
/// the way, and a GPU's kernels keep 16 or 32 bits or round in blocks of their own. Each
/// rounding to 8 bits makes half a percent.
const ROUNDED_NEAR: f32 = 2e-2;
/// The same where nothing is rounded to 8 bits: kernels still sum in another order.
const NEAR: f32 = 1e-2;
/// How far logits may then be apart: a router that is near a tie may choose another expert.
const LOGITS_NEAR: f32 = 5e-2;
/// The same for rounded weights where layers carry a state from token to token: what one token's
/// rounding did to it is there for all that follow.
const STATE_LOGITS_NEAR: f32 = 1e-1;

fn runtime() -> Runtime {
    Runtime::start(Seam::Registered).expect("the only runtime here")
}

fn stand_in(setting: Setting) -> Trial {
    trial(&[GpuDevice::cpu(&runtime())], setting)
}

/// The GPUs of this machine and build; CI's vulkan step requires one.
fn gpus() -> Vec<GpuDevice> {
    let found = gpu_devices(&runtime());
    let required = std::env::var_os("MOTLEY_REQUIRE_GPU").is_some();
    assert!(!required || !found.is_empty(), "no GPU (GGML_VK_VISIBLE_DEVICES=0 for lavapipe)");
    if found.is_empty() {
        eprintln!("passing over: no GPU in this build or machine");
    }
    found
}

#[test]
fn a_stand_in_has_the_bits_of_the_cpu() {
    for &arch in Arch::ALL {
        let Some(model) = model(arch) else { return };
        let expected = model.logits_of_cpu();
        for percent in [0, 25, 50, 100] {
            let setting = Setting { percent, ..Setting::of(&model, ROOMY_BYTES) };
            let found = stand_in(setting);
            assert_eq!(found.refused, None, "{arch:?}");
            assert!(found.logits == expected, "{arch:?} at {percent} %: other bits");
            assert_eq!(found.rows_apart, 0.0, "{arch:?}");
            assert_eq!(found.gpu_rows + found.cpu_rows, found.block_rows, "{arch:?}");
            assert_eq!(found.cpu_rows == 0, percent == 100, "{arch:?} at {percent} %");
            assert_eq!(found.gpu_rows == 0, percent == 0, "{arch:?} at {percent} %");
        }
    }
}

#[test]
fn pieces_and_several_stacks_have_the_bits_of_the_whole() {
    for arch in [Arch::Qwen3moe, Arch::GptOss] {
        let Some(model) = model(arch) else { return };
        let expected = model.logits_of_cpu();
        let mut setting = Setting { percent: 100, ..Setting::of(&model, ROOMY_BYTES) };
        setting.options.max_rows = 7;
        setting.options.largest_tensor_bytes = 600 << 10;
        let found = stand_in(setting);
        assert!(found.logits == expected, "{arch:?}");
        assert!(found.computations > 2 * found.blocks, "{} computations", found.computations);
    }
}

#[test]
fn units_of_different_size_share_a_layer() {
    let Some(model) = model(Arch::Qwen3moe) else { return };
    let expected = model.logits_of_cpu();
    let device = GpuDevice::cpu(&runtime());
    let setting = Setting { percent: 100, ..Setting::of(&model, 3 * MIB) };
    let found = trial(&[device.clone(), device], setting);
    assert!(found.logits == expected);
    assert!(found.slots[0] > found.slots[1], "{:?}", found.slots);
    assert!(found.cpu_rows > 0 && found.gpu_rows > 0, "{found:?}");
    assert_eq!(found.gpu_rows + found.cpu_rows, found.block_rows);
}

#[test]
fn every_architecture_comes_close_on_a_gpu() {
    for device in gpus() {
        for &arch in Arch::ALL {
            let Some(model) = model(arch) else { return };
            let has_states = model.spec.shape.attention.state_elements > 0;
            let logits = if has_states { STATE_LOGITS_NEAR } else { LOGITS_NEAR };
            comes_close(&device, &model, arch, (ROUNDED_NEAR, logits));
        }
        for arch in [Arch::Qwen3moe, Arch::GptOss, Arch::Qwen35moe, Arch::Granitehybrid] {
            let Some(model) = f32_model(arch) else { return };
            comes_close(&device, &model, arch, (NEAR, LOGITS_NEAR));
        }
    }
}

/// Bounds are for rows of experts and for logits.
fn comes_close(device: &GpuDevice, model: &TestModel, arch: Arch, near: (f32, f32)) {
    let expected = model.logits_of_cpu();
    let found = trial(std::slice::from_ref(device), Setting::of(model, ROOMY_BYTES));
    assert_eq!(found.refused, None, "{arch:?}");
    assert!(found.gpu_rows > 0 && found.gpu_rows + found.cpu_rows == found.block_rows);
    let (rows, logits) = (found.rows_apart, apart(&expected, &found.logits));
    eprintln!("{arch:?} on {}: rows {rows:.1e}, logits {logits:.1e}", device.info().name);
    assert!(rows <= near.0, "{arch:?}: {rows}");
    assert!(logits <= near.1, "{arch:?}: {logits}");
}

#[test]
fn a_gpu_says_what_it_has() {
    for device in gpus() {
        let info = device.info();
        assert!(matches!(info.kind, DeviceType::Gpu | DeviceType::IntegratedGpu), "{info:?}");
        assert!(info.total_bytes > 0 && device.free_bytes() <= info.total_bytes, "{info:?}");
        assert!(device.free_bytes() <= device.info().total_bytes);
    }
}

#[test]
fn a_unit_of_some_layers_refuses_the_others() {
    let Some(model) = model(Arch::Qwen3moe) else { return };
    let is_served = |layer| layer == 1;
    let found = stand_in(Setting { is_served, percent: 100, ..Setting::of(&model, ROOMY_BYTES) });
    assert!(found.logits == model.logits_of_cpu());
    assert_eq!(found.slots, [model.spec.experts]);
    assert_eq!(found.refused.as_deref(), Some("a slot does not hold an expert of this layer"));
    assert!(found.gpu_rows > 0 && found.cpu_rows > found.gpu_rows, "one layer of three");
    assert_eq!(found.gpu_rows + found.cpu_rows, found.block_rows);
}

#[test]
fn slots_are_lent_and_come_back() {
    let Some(model) = model(Arch::Qwen3moe) else { return };
    let device = GpuDevice::cpu(&runtime());
    let unit =
        GpuUnit::new(&device, &model.spec, &GpuOptions::within(2 * MIB, 2 * MIB / 8)).unwrap();
    assert!(unit.bytes() <= 2 * MIB, "{}", unit.bytes());
    assert_eq!(unit.slots(), unit.slots_of(0));
    let leases: Vec<_> = std::iter::from_fn(|| unit.lease(1)).collect();
    assert_eq!(leases.len() as u32, unit.slots());
    assert!(unit.lease(0).is_none(), "layers share their slots");
    let mut lane = unit.copy_lane().unwrap();
    let expert = leases.into_iter().next().map(|lease| lane.fill(lease, model.mapped.parts(1, 3)));
    let expert = expert.unwrap().unwrap();
    assert_eq!(unit.free_slots_of(2), unit.slots() - 1);
    let clone = expert.clone();
    drop(expert);
    assert!(clone.is_idle());
    drop(clone);
    assert_eq!(unit.free_slots_of(2), unit.slots());
    assert!(unit.lease(99).is_none());
}

#[test]
fn what_does_not_fit_says_why() {
    let Some(model) = model(Arch::GptOss) else { return };
    let device = GpuDevice::cpu(&runtime());
    let error =
        GpuUnit::new(&device, &model.spec, &GpuOptions::within(1000, 1000 / 8)).err().unwrap();
    let UnitError::NoRoom { least_bytes, .. } = error else { panic!("{error}") };
    let unit = GpuUnit::new(
        &device,
        &model.spec,
        &GpuOptions::within(2 * least_bytes, 2 * least_bytes / 8),
    )
    .unwrap();
    let mut lane = unit.copy_lane().unwrap();
    let weights = model.mapped.parts(0, 0).filter(|(_, part, _)| *part == TensorPart::Weight);
    let error = lane.fill(unit.lease(0).unwrap(), weights).unwrap_err();
    assert!(matches!(error.reason, FillReason::Missing { part: TensorPart::Bias, .. }), "{error}");
    let short = model.mapped.parts(0, 0).map(|(m, p, bytes)| (m, p, &bytes[1..]));
    let error = lane.fill(error.lease, short).unwrap_err();
    assert!(matches!(error.reason, FillReason::Size { .. }), "{error}");
    let other = GpuUnit::new(
        &device,
        &model.spec,
        &GpuOptions::within(2 * least_bytes, 2 * least_bytes / 8),
    )
    .unwrap();
    let error = lane.fill(other.lease(0).unwrap(), model.mapped.parts(0, 0)).unwrap_err();
    assert_eq!(error.reason, FillReason::OtherUnit);
    let up = |(matrix, _, _): &(Matrix, TensorPart, &[u8])| *matrix == Matrix::Up;
    assert!(model.mapped.parts(0, 0).any(|part| up(&part)));
    assert_eq!(model.mapped.parts(0, 999).count(), 0);
}
