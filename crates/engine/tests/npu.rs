//! Hot experts on static graphs: with `spill` the output is the CPU's, `prune` drops what
//! it counts, `pad` pads more. Needs `ORT_DYLIB_PATH`.

#![cfg(feature = "npu")]

use motley_engine::blocks::npu::{NpuFigures, NpuOptions, NpuOverflow, even_profile};
use motley_engine::{Engine, EngineOptions, Runtime, Seam, SessionOptions, ThreadSet, ThreadSets};
use motley_model::gguf::GgmlType;
use motley_plan::ExpertKernels;
use motley_testkit::fixtures::{has_onnx_runtime, synthetic_of, trained};
use motley_testkit::synth::{Arch, Preset, Request};
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
    let options = EngineOptions {
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        repack: false,
        kernels,
        ..EngineOptions::default()
    };
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
