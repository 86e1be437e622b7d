//! Hot experts on static graphs: with `spill` the output is the CPU's, `prune` drops what
//! it counts, `pad` pads more. Needs `ORT_DYLIB_PATH`.

#![cfg(feature = "npu")]

#[path = "support/order.rs"]
mod order;

use motley_cost::ComputeCost;
use motley_engine::blocks::machine::{DeviceOptions, DeviceRoom};
use motley_engine::blocks::npu::{NpuChoice, NpuFigures, NpuOptions, NpuOverflow, even_profile};
use motley_engine::{
    Engine, EngineOptions, GpuDevice, Loading, Runtime, Seam, SessionOptions, ThreadSet, ThreadSets,
};
use motley_model::gguf::GgmlType;
use motley_model::{KvType, ModelSpec};
use motley_plan::ExpertKernels;
use motley_plan::budget::{Budget, SessionShape};
use motley_testkit::fixtures::{has_onnx_runtime, synthetic_of, trained};
use motley_testkit::synth::{Arch, Preset, Request};
use order::first_experts;
use std::path::{Path, PathBuf};

/// Largest difference of any logit, f32 graphs against ggml's kernels.
const MAX_LOGIT_DIFFERENCE: f32 = 1e-2;
const TOKENS: usize = 256;
/// Positions that may differ by more when the CPU computes in blocks of one expert: sums in another
/// order, and a router undecided between two experts takes the other.
const UNDECIDED_POSITIONS: usize = 4;

/// Floats: ggml rounds activations to eight bits beside quantised weights, the graphs do not, and
/// that alone moves logits by more than is allowed here.
fn floats(arch: Arch) -> Option<PathBuf> {
    synthetic_of(&Request { quant: GgmlType::F32, ..Request::of_preset(Preset::Test(arch)) })
}

/// Kernels in the file's order, as the bare engine has them.
fn engine(model: &Path) -> Engine {
    engine_with(model, ExpertKernels::exact())
}

fn engine_with(model: &Path, kernels: ExpertKernels) -> Engine {
    load(model, EngineOptions { kernels, ..EngineOptions::default() })
}

fn load(model: &Path, options: EngineOptions) -> Engine {
    let threads = ThreadSets::both(ThreadSet::anywhere(1));
    let options = EngineOptions { threads, repack: false, ..options };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Engine::load(runtime, model, &options, &mut |_| true).expect("the model loads")
}

/// Logits of every position.
fn logits(engine: &Engine) -> Vec<Vec<f32>> {
    let options = SessionOptions { context_tokens: 512, chunk_tokens: 256, ..Default::default() };
    let mut session = engine.session(&options).expect("a session");
    let tokens: Vec<i32> = (0..TOKENS as i32).map(|n| (n * n * 31 + n * 7 + 5) % 4000).collect();
    let mut rows = Vec::new();
    session.score(&tokens, &mut |_, logits| rows.push(logits.to_vec())).expect("it runs");
    rows
}

fn with_npu(
    engine: &mut Engine,
    change: impl FnOnce(&mut NpuOptions),
) -> (Vec<Vec<f32>>, NpuFigures) {
    // Real routing is uneven, so with an even profile some rows overflow.
    let mut options = NpuOptions::new(even_profile(engine.spec()), TOKENS as u32);
    change(&mut options);
    let npu = engine.use_npu(options).expect("a device");
    let found = logits(engine);
    (found, npu.figures())
}

fn worst(first: &[Vec<f32>], second: &[Vec<f32>]) -> f32 {
    first.iter().zip(second).map(|(a, b)| worst_of(a, b)).fold(0.0, f32::max)
}

fn worst_of(first: &[f32], second: &[f32]) -> f32 {
    first.iter().zip(second).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn spill_equals_the_cpu(model: &Path) {
    let mut engine = engine(model);
    let expected = logits(&engine);
    let (found, figures) = with_npu(&mut engine, |_| {});
    assert_eq!(figures.refused.len(), 0, "{:?}", figures.refused);
    let total = figures.total();
    println!("{}: {total:?}, difference {:.2e}", model.display(), worst(&found, &expected));
    assert_eq!(total.pruned, 0);
    assert!(total.device > 0 && total.spilled > 0, "both sides have work: {total:?}");
    assert_eq!(figures.layers.len(), engine.spec().expert_layers().count());
    assert!(worst(&found, &expected) < MAX_LOGIT_DIFFERENCE, "{}", worst(&found, &expected));
}

#[test]
fn spill_equals_the_cpu_on_the_trained_model() {
    let Some(model) = trained("f16").filter(|_| has_onnx_runtime()) else { return };
    spill_equals_the_cpu(&model);
}

#[test]
fn what_spills_may_be_computed_in_blocks() {
    let Some(model) = trained("f16").filter(|_| has_onnx_runtime()) else { return };
    let mut engine = engine_with(&model, ExpertKernels::default());
    let expected = logits(&engine);
    let (found, figures) = with_npu(&mut engine, |_| {});
    assert!(figures.total().spilled > 0, "{:?}", figures.total());
    let pairs = found.iter().zip(&expected);
    let far = pairs.filter(|(a, b)| worst_of(a, b) >= MAX_LOGIT_DIFFERENCE).count();
    assert!(far <= UNDECIDED_POSITIONS, "{far} positions of {TOKENS} differ");
}

#[test]
fn spill_equals_the_cpu_on_a_made_model() {
    let Some(model) = floats(Arch::Qwen3moe).filter(|_| has_onnx_runtime()) else { return };
    spill_equals_the_cpu(&model);
}

#[test]
fn clamped_and_biased_experts_too() {
    let Some(model) = floats(Arch::GptOss).filter(|_| has_onnx_runtime()) else { return };
    spill_equals_the_cpu(&model);
}

#[test]
fn pruning_drops_what_it_counts_and_padding_pads() {
    let Some(model) = floats(Arch::Qwen3moe).filter(|_| has_onnx_runtime()) else { return };
    let mut engine = engine(&model);
    let expected = logits(&engine);
    let (found, figures) = with_npu(&mut engine, |npu| npu.overflow = NpuOverflow::Prune);
    let pruned = figures.total();
    assert!(pruned.drop_rate() > 0.0 && pruned.spilled == 0, "{pruned:?}");
    assert_eq!(pruned.device + pruned.pruned, pruned.pairs);
    assert!(worst(&found, &expected) > MAX_LOGIT_DIFFERENCE, "dropping changes something");
    let (found, figures) = with_npu(&mut engine, |npu| {
        npu.overflow = NpuOverflow::Pad;
        npu.headroom = 32.0;
    });
    let padded = figures.total();
    assert_eq!((padded.pruned, padded.spilled), (0, 0));
    assert!(padded.padding_rate() > pruned.padding_rate(), "{padded:?} and {pruned:?}");
    assert!(worst(&found, &expected) < MAX_LOGIT_DIFFERENCE);
}

/// Experts on disk with room for a quarter of them in memory, and for a quarter on a device.
fn engine_beyond_memory(model: &Path, from_disk: bool, beside_device: bool) -> Engine {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let (spec, _) = ModelSpec::open(model).expect("a model");
    let shape = SessionShape {
        context_tokens: 512,
        kv: KvType::F16,
        windows: false,
        chunk_tokens: 256,
        output_tokens: 256,
        states: 1,
    };
    let budget = Budget::of(&spec, shape);
    let quarter = spec.expert_layers().count() as u32 * spec.experts / 4;
    let bytes = budget.slot_bytes * u64::from(quarter) * 6 / 5;
    let room = DeviceRoom { device: GpuDevice::cpu(&runtime), budget_bytes: Some(bytes) };
    let devices = DeviceOptions {
        experts_most: quarter,
        most_used: first_experts(&spec),
        ..DeviceOptions::over(vec![room])
    };
    let memory = budget.bytes_with(quarter).max(budget.smallest_bytes());
    let options = EngineOptions {
        loading: if from_disk { Loading::OnDemand } else { Loading::Mapped },
        memory_bytes: from_disk.then_some(memory),
        devices: beside_device.then_some(devices),
        kernels: ExpertKernels::exact(),
        ..EngineOptions::default()
    };
    load(model, options)
}

#[test]
fn graphs_take_part_beside_disk_and_a_device() {
    for arch in [Arch::Qwen3moe, Arch::GptOss] {
        let Some(model) = floats(arch).filter(|_| has_onnx_runtime()) else { return };
        let expected = logits(&engine(&model));
        for (from_disk, beside_device) in [(true, false), (false, true), (true, true)] {
            let mut engine = engine_beyond_memory(&model, from_disk, beside_device);
            let (found, figures) = with_npu(&mut engine, |npu| npu.headroom = 0.5);
            let total = figures.total();
            assert!(total.device > 0 && total.spilled > 0, "both sides have work: {total:?}");
            assert_eq!(total.device + total.spilled, total.pairs, "{total:?}");
            let difference = worst(&found, &expected);
            assert!(difference < MAX_LOGIT_DIFFERENCE, "{arch:?}, {from_disk}: {difference}");
            if beside_device {
                let report = engine.devices().expect("a device").report();
                assert!(report.figures.device_pairs > 0, "{report:?}");
            }
        }
    }
}

#[test]
fn measured_costs_keep_experts_where_they_are_faster() {
    let Some(model) = floats(Arch::Qwen3moe).filter(|_| has_onnx_runtime()) else { return };
    let mut engine = engine(&model);
    let expected = logits(&engine);
    let mut share = |per_token_us| {
        let cpu = ComputeCost { launch_us: 0.0, per_token_us, floor_us: 0.0 };
        let choice = NpuChoice::Measured { cpu, read_us: 0.0 };
        let (found, figures) = with_npu(&mut engine, |npu| npu.choice = choice);
        assert!(worst(&found, &expected) < MAX_LOGIT_DIFFERENCE, "{}", worst(&found, &expected));
        figures.total().device_share()
    };
    assert_eq!(share(1e-6), 0.0, "nothing is faster than such a CPU");
    assert!(share(1e6) > 0.5, "anything is faster than such a CPU");
}

#[test]
fn graphs_keep_to_their_memory() {
    let Some(model) = floats(Arch::Qwen3moe).filter(|_| has_onnx_runtime()) else { return };
    let mut engine = engine(&model);
    let (_, all) = with_npu(&mut engine, |npu| npu.group_experts = 4);
    let (_, none) = with_npu(&mut engine, |npu| npu.memory_bytes = 1000);
    assert!(all.total().device > 0, "{:?}", all.total());
    assert_eq!((none.total().device, none.total().launches), (0, 0));
    let (_, one_by_one) = with_npu(&mut engine, |npu| {
        npu.group_experts = 4;
        npu.launches = 1;
    });
    assert_eq!(one_by_one.total().launches, all.total().launches);
}
