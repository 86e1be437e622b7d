//! Promise 1 (M5): whatever the placement or the budget, logits are those of the bare
//! engine to the last bit. 512 prompt tokens and 64 decode steps, every architecture,
//! both ways of loading, down to two slots for all experts of the model; no split is delegated.
//!
//! Rearranged weights and blocks of one expert round differently: their logits are as near to those
//! of plain weights as the bare engine's own rearranged ones are.

mod support;

use motley_testkit::synth::{Arch, Preset, Request};
use serde_json::json;
use std::path::Path;
use support::{
    BARE, BARE_PLAIN, MAPPED, ON_DEMAND, REPACKED, SMALL, SMALLEST, Way, job, work_with_logits,
};

fn check_arch(arch: Arch) {
    let Some(model) = support::synth(arch) else { return };
    check_model(&model);
}

fn check_model(model: &Path) {
    check_near(model);
    check_same(model, BARE_PLAIN, &[MAPPED, ON_DEMAND, SMALL, SMALLEST]);
}

fn check_same(model: &Path, bare: Way, ways: &[Way]) {
    let (outcome, expected) = work_with_logits(job(model, bare));
    assert_eq!(outcome["blocks"], 0, "the bare engine has no seam");
    assert_eq!(outcome["tokens"].as_array().unwrap().len(), 64);
    for &way in ways {
        let mut job = job(model, way);
        if !way.on_demand {
            // In memory and in the file's order nothing is faster than llama.cpp's own way: no
            // block is claimed, unless somebody watches.
            let (outcome, logits) = work_with_logits(job.clone());
            assert_eq!(outcome["blocks"], 0, "{way:?}: claimed for nothing");
            assert!(logits == expected, "{way:?}: logits differ from the bare engine's");
            job["routing"] = json!(true);
        }
        let (outcome, logits) = work_with_logits(job);
        assert!(outcome["blocks"].as_u64().unwrap() > 0, "{way:?}: no block came through the seam");
        assert_eq!(outcome["delegated"], 0, "{way:?}");
        assert_eq!(logits.len(), expected.len());
        assert!(logits == expected, "{way:?}: logits differ from the bare engine's on {model:?}");
    }
}

/// Prompts whose last logits are compared: some experts with one row, some with many.
const PROMPTS: [usize; 4] = [5, 60, 200, 512];
/// Times the bare engine's own noise. The noise of one prompt is chance: a router that is undecided
/// between two experts makes a difference of its own.
const NOISE: f64 = 4.0;
/// Less than this, squared and relative, is noise on any machine.
const QUIET: f64 = 1e-5;

fn check_near(model: &Path) {
    let plain = last_logits(model, BARE_PLAIN, None);
    let noise = median_distance(&plain, &last_logits(model, BARE, None)).max(QUIET);
    for layout in ["plain", "repacked", "amx"] {
        for blocks_from_rows in [Some(0.0), Some(3.0), None] {
            let types = ["q4_0", "q4_K", "q6_K", "mxfp4", "f16"];
            let layouts: Vec<_> =
                types.map(|ty| json!({"quantisation": ty, "layout": layout})).into();
            let kernels = json!({
                "layouts": layouts, "blocks_from_rows": blocks_from_rows, "block_rows": 16,
            });
            let found = last_logits(model, REPACKED, Some(&kernels));
            let off = median_distance(&plain, &found);
            assert!(
                off <= NOISE * noise,
                "{layout}, blocks from {blocks_from_rows:?}: {off:e} of {noise:e} on {model:?}"
            );
        }
    }
    check_rearranged(model, &plain, noise);
}

/// Streamed experts that are rearranged where enough tokens use them: as near, and the same bits
/// whichever were in memory already.
fn check_rearranged(model: &Path, plain: &[Vec<f32>], noise: f64) {
    let kernels = json!({
        "layouts": [], "blocks_from_rows": 0.0, "block_rows": 16, "rearranged_from_rows": 4,
    });
    let small = last_logits(model, SMALL, Some(&kernels));
    let off = median_distance(plain, &small);
    assert!(off <= NOISE * noise, "rearranged: {off:e} of {noise:e} on {model:?}");
    let smallest = last_logits(model, SMALLEST, Some(&kernels));
    assert!(small == smallest, "rearranged: what is in memory changes bits on {model:?}");
}

/// The logits after each of [`PROMPTS`].
fn last_logits(model: &Path, way: Way, kernels: Option<&serde_json::Value>) -> Vec<Vec<f32>> {
    let of = |prefill: usize| {
        let mut job = job(model, way);
        (job["prefill"], job["decode"]) = (json!(prefill), json!(0));
        if let Some(kernels) = kernels {
            job["kernels"] = kernels.clone();
        }
        let (_, bytes) = work_with_logits(job);
        let value = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes"));
        bytes.chunks_exact(4).map(value).collect()
    };
    PROMPTS.into_iter().map(of).collect()
}

/// The middle one of the squared distances, each relative to the logits' own square.
fn median_distance(expected: &[Vec<f32>], found: &[Vec<f32>]) -> f64 {
    let square = |value: f32| f64::from(value) * f64::from(value);
    let mut distances: Vec<f64> = expected
        .iter()
        .zip(found)
        .map(|(expected, found)| {
            assert_eq!((expected.len(), expected.is_empty()), (found.len(), false));
            let off: f64 = expected.iter().zip(found).map(|(a, b)| square(a - b)).sum();
            off / expected.iter().map(|value| square(*value)).sum::<f64>()
        })
        .collect();
    distances.sort_by(f64::total_cmp);
    distances[distances.len() / 2]
}

#[test]
fn qwen3moe() {
    check_arch(Arch::Qwen3moe);
}

#[test]
fn llama_as_mixtral() {
    check_arch(Arch::Llama);
}

#[test]
fn deepseek2_with_shared_experts_and_grouped_router() {
    check_arch(Arch::Deepseek2);
}

#[test]
fn qwen2moe_with_gated_shared_expert() {
    check_arch(Arch::Qwen2moe);
}

#[test]
fn phimoe() {
    check_arch(Arch::Phimoe);
}

#[test]
fn olmoe() {
    check_arch(Arch::Olmoe);
}

#[test]
fn gpt_oss_with_biases_mxfp4_and_clamped_gate() {
    check_arch(Arch::GptOss);
}

#[test]
fn granitemoe() {
    check_arch(Arch::Granitemoe);
}

#[test]
fn qwen35moe_with_recurrent_layers() {
    check_arch(Arch::Qwen35moe);
}

#[test]
fn granitehybrid_with_recurrent_layers() {
    check_arch(Arch::Granitehybrid);
}

#[test]
fn glm4moe_with_a_predictor_layer() {
    check_arch(Arch::Glm4moe);
}

#[test]
fn minimax_m2() {
    check_arch(Arch::MinimaxM2);
}

#[test]
fn deepseek32_with_sparse_attention() {
    check_arch(Arch::Deepseek32);
}

#[test]
fn gemma4_with_fused_experts_and_a_scale_for_each() {
    check_arch(Arch::Gemma4);
}

/// Real weights and hidden states, K-quants.
#[test]
fn trained_small_model() {
    let Some(model) = support::shared("tiny-wiki-moe/tiny-wiki-moe-q4_k_m.gguf") else { return };
    check_model(&model);
}

/// Several threads share one pool with llama.cpp; the result must not depend on it.
#[test]
fn two_threads() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let with_two = |way| {
        let mut job = job(&model, way);
        job["threads"] = json!(2);
        job["decode"] = json!(16);
        work_with_logits(job).1
    };
    let expected = with_two(BARE_PLAIN);
    assert!(with_two(MAPPED) == expected);
    assert!(with_two(ON_DEMAND) == expected);
}

/// A split model gives what the whole one gives, through llama.cpp's own split
/// reading and through the virtual file.
#[test]
fn split_in_three() {
    let whole = Request::of_preset(Preset::Test(Arch::Qwen3moe));
    let split = Request { shards: 3, ..whole.clone() };
    let (Some(whole), Some(split)) =
        (support::synth_request(&whole), support::synth_request(&split))
    else {
        return;
    };
    let (_, expected) = work_with_logits(job(&whole, BARE_PLAIN));
    for way in [MAPPED, ON_DEMAND] {
        let (_, logits) = work_with_logits(job(&split, way));
        assert!(logits == expected, "{way:?}");
    }
}

/// Loading on demand reads the dense tensors once and nothing of the experts.
#[test]
fn on_demand_reads_dense_bytes_only() {
    let Some(model) = support::shared("tiny-wiki-moe/tiny-wiki-moe-f16.gguf") else { return };
    let (spec, _) = motley_model::ModelSpec::open(&model).unwrap();
    let sizes = motley_model::Sizes::of(&spec);
    let mut job = job(&model, ON_DEMAND);
    job["prefill"] = json!(1);
    job["decode"] = json!(0);
    let outcome = support::work(&job);
    let read = outcome["load_reads"][0].as_u64().unwrap();
    let skipped = outcome["load_reads"][1].as_u64().unwrap();
    let dense = sizes.dense_bytes + sizes.shared_bytes;
    assert!(read as f64 <= 1.1 * dense as f64, "read {read} of {dense} dense bytes");
    assert!(skipped >= sizes.routed_bytes, "skipped {skipped} of {}", sizes.routed_bytes);
    let resident = outcome["resident_bytes"].as_u64().unwrap();
    assert!(resident < sizes.routed_bytes, "{resident} bytes resident after load");
}
