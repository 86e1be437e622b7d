//! Why quantised experts differ between the graphs and ggml's CPU path: beside quantised
//! weights ggml rounds activations to eight bits, the graphs do not. Shown against a third
//! computation: the same weights as floats through ggml's float kernels. Needs
//! `ORT_DYLIB_PATH`.

#![cfg(feature = "npu")]

mod support;

use motley_engine::blocks::npu::{NpuOptions, NpuOverflow, even_profile};
use motley_engine::{Engine, EngineOptions, Runtime, Seam, SessionOptions, ThreadSet, ThreadSets};
use motley_model::gguf::{GgmlType, TensorInfo};
use motley_testkit::fixtures::{has_onnx_runtime, synthetic, trained};
use motley_testkit::synth::Arch;
use std::path::Path;
use support::as_floats;

/// Largest difference of any logit between the graphs and the float computation.
const MAX_LOGIT_DIFFERENCE: f32 = 1e-2;
/// How many times further from it ggml's quantised path is, at least.
const LEAST_FACTOR: f32 = 10.0;
const TOKENS: usize = 256;

/// Which tensors become floats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Floats {
    /// All but the experts' matrices: nothing else rounds activations.
    DenseOnly,
    /// All: the reference.
    Everything,
}

impl Floats {
    fn takes(self, tensor: &TensorInfo) -> bool {
        let is_expert = tensor.name.contains("_exps.");
        tensor.ty != GgmlType::F32 && (self == Self::Everything || !is_expert)
    }
}

fn load(model: &Path) -> Engine {
    let options = EngineOptions {
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        repack: false,
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Engine::load(runtime, model, &options, &mut |_| true).expect("the model loads")
}

/// Logits of every position.
fn logits(engine: &Engine) -> Vec<f32> {
    let options = SessionOptions { context_tokens: 512, chunk_tokens: 256, ..Default::default() };
    let mut session = engine.session(&options).expect("a session");
    let tokens: Vec<i32> = (0..TOKENS as i32).map(|n| (n * n * 31 + n * 7 + 5) % 4000).collect();
    let mut all = Vec::new();
    session.score(&tokens, &mut |_, logits| all.extend_from_slice(logits)).expect("it runs");
    all
}

/// Largest and mean difference.
fn difference(first: &[f32], second: &[f32]) -> (f32, f32) {
    assert_eq!(first.len(), second.len());
    let each = || first.iter().zip(second).map(|(a, b)| (a - b).abs());
    let mean = each().map(f64::from).sum::<f64>() / first.len() as f64;
    (each().fold(0.0, f32::max), mean as f32)
}

/// Both paths against the float computation of `model`'s weights.
fn the_graphs_are_the_floats(model: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let [quantised, floats] =
        ["quantised.gguf", "floats.gguf"].map(|name| folder.path().join(name));
    as_floats(model, &quantised, |tensor| Floats::DenseOnly.takes(tensor));
    as_floats(model, &floats, |tensor| Floats::Everything.takes(tensor));
    let reference = logits(&load(&floats));
    let mut engine = load(&quantised);
    let cpu = difference(&logits(&engine), &reference);
    // Every row of every expert on the graphs: one capacity with room for all.
    let npu = engine.use_npu(NpuOptions {
        overflow: NpuOverflow::Pad,
        headroom: 64.0,
        ..NpuOptions::new(even_profile(engine.spec()), TOKENS as u32)
    });
    let npu = npu.expect("a device");
    let graphs = difference(&logits(&engine), &reference);
    let total = npu.figures().total();
    println!(
        "{}: graphs {:.1e} (mean {:.1e}), ggml beside quantised weights {:.1e} (mean {:.1e})",
        model.display(),
        graphs.0,
        graphs.1,
        cpu.0,
        cpu.1
    );
    assert_eq!((total.device, npu.figures().refused.len()), (total.pairs, 0));
    assert!(graphs.0 < MAX_LOGIT_DIFFERENCE, "{graphs:?}");
    assert!(cpu.0 > LEAST_FACTOR * graphs.0, "{cpu:?} is ggml's, {graphs:?} the graphs'");
}

#[test]
fn q4_0() {
    let Some(model) = synthetic(Arch::Qwen3moe).filter(|_| has_onnx_runtime()) else { return };
    the_graphs_are_the_floats(&model);
}

#[test]
fn mxfp4_clamped_and_biased() {
    let Some(model) = synthetic(Arch::GptOss).filter(|_| has_onnx_runtime()) else { return };
    the_graphs_are_the_floats(&model);
}

#[test]
fn q8_0_of_the_trained_model() {
    let Some(model) = trained("q8_0").filter(|_| has_onnx_runtime()) else { return };
    the_graphs_are_the_floats(&model);
}

#[test]
fn q4_k_of_the_trained_model() {
    let Some(model) = trained("q4_k_m").filter(|_| has_onnx_runtime()) else { return };
    the_graphs_are_the_floats(&model);
}
