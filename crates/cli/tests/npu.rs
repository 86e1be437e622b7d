//! A static-graph device as typed: `run`, `serve`, `eval`, `bench` and `reproduce` with it. Needs
//! `ORT_DYLIB_PATH`.

#![cfg(feature = "npu")]

mod support;

use motley_model::gguf::GgmlType;
use motley_testkit::synth::{Arch, Preset, Request};
use serde_json::{Value, json as value};
use std::path::PathBuf;
use std::process::Command;
use support::server::Server;

/// Largest difference of any logit between the device and the CPU.
const MAX_LOGIT_DIFFERENCE: f64 = 1e-2;

struct Files {
    model: PathBuf,
    text: PathBuf,
    other: PathBuf,
}

fn files() -> Option<Files> {
    if !motley_testkit::fixtures::has_onnx_runtime() {
        return None;
    }
    Some(Files {
        model: support::shared("tiny-wiki-moe/tiny-wiki-moe-f16.gguf")?,
        text: support::shared("tiny-wiki-moe/val.txt")?,
        other: support::shared("tiny-wiki-moe/shakespeare_val.txt")?,
    })
}

fn json(args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
    // Without costs every expert goes to the device.
    command.env("MOTLEY_CONFIG", concat!(env!("CARGO_TARGET_TMPDIR"), "/uncalibrated"));
    let output = command.args(args).args(["--threads", "1", "--json"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn pruning_is_distinguished_from_spilling() {
    let Some(Files { model, text, other }) = files() else { return };
    let [model, text, other] = [&model, &text, &other].map(|path| path.to_str().unwrap());
    let common =
        ["eval", model, "--exact", "--text", text, "--items", "4", "--npu-calibrate", other];
    let compared = ["--compare", "npu=spill", "--compare", "npu=prune,npu-headroom=0.7"];
    let report = json(&[&common[..], &compared].concat());
    let all = |run: usize| report["runs"][run]["npu"][0]["layers"].as_array().unwrap().last();
    assert!(report["runs"][0]["npu"].is_null(), "the first run has no device");
    let (spill, prune) = (all(1).unwrap(), all(2).unwrap());
    assert_eq!(number(&spill["drop_rate"]), 0.0);
    let dropped = number(&prune["drop_rate"]);
    assert!((0.1..0.4).contains(&dropped), "{dropped}");
    let ratio = |at: usize| number(&report["differences"][at]["text"]["perplexity_ratio"]["value"]);
    assert!((ratio(0) - 1.0).abs() < 1e-3, "{}", ratio(0));
    assert!(ratio(1) > 1.001, "{}", ratio(1));
}

/// Weights in f32: beside others ggml rounds activations, and a near-tied router then takes
/// another expert.
fn floats() -> Option<PathBuf> {
    let preset = Request::of_preset(Preset::Test(Arch::Qwen3moe));
    let request = Request { quant: GgmlType::F32, ..preset };
    support::synth_request(&request)
}

#[test]
fn a_prompt_in_pairs_with_and_without_the_device() {
    let Some(Files { text, other, .. }) = files() else { return };
    let Some(model) = floats() else { return };
    let [model, text, other] = [&model, &text, &other].map(|path| path.to_str().unwrap());
    let prompt = ["--text", text, "--prefill", "768", "--chunk", "256", "--pairs", "2"];
    let device = ["--npu", "spill", "--npu-calibrate", other, "--npu-threads", "1", "--exact"];
    let report = json(&[&["bench", model], &prompt[..], &device].concat());
    assert_eq!(report["difference"]["positions"], 768);
    let largest = number(&report["difference"]["largest"]);
    assert!(largest > 0.0 && largest < MAX_LOGIT_DIFFERENCE, "{largest}");
    assert_eq!(report["pairs"].as_array().unwrap().len(), 2);
    assert!(number(&report["ratio"]["median"]) > 0.0);
}

#[test]
fn every_step_of_the_ladder_launches_less() {
    let Some(Files { model, text, other }) = files() else { return };
    let [model, text, other] = [&model, &text, &other].map(|path| path.to_str().unwrap());
    let ladder = ["--model", model, "--text", text, "--calibrate", other, "--launch-us", "300"];
    let sizes = ["--prompt", "512", "--chunk", "256", "--runs", "1"];
    let report = json(&[&["reproduce", "npumoe", "--dry-run"], &ladder[..], &sizes].concat());
    let rungs = report[0]["measured"]["rungs"].as_array().unwrap();
    let names: Vec<_> = rungs.iter().map(|rung| rung["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["CPU alone", "base", "+ tiers", "+ groups", "+ residency"]);
    let launches: Vec<f64> = rungs.iter().map(|rung| number(&rung["launches"])).collect();
    assert_eq!(launches[0], 0.0);
    assert!(launches[1] >= launches[2] && launches[2] > 4.0 * launches[3], "{launches:?}");
    assert!(launches[3] >= launches[4], "{launches:?}");
    let padding: Vec<f64> = rungs.iter().map(|rung| number(&rung["padding_rate"])).collect();
    assert!(padding[1] > padding[2], "tiers pad less: {padding:?}");
    assert!(rungs.iter().all(|rung| number(&rung["joules"]) > 0.0), "{rungs:?}");
}

/// Long enough for a chunk.
fn prompt() -> String {
    (0..400).map(|n| format!("{} ", n * n % 97)).collect()
}

#[test]
fn run_says_the_same_with_experts_in_memory_and_on_disk() {
    let Some(model) = files().and_then(|_| floats()) else { return };
    let (model, prompt) = (model.to_str().unwrap(), prompt());
    let common = support::continued(model, &prompt, &["-n", "16", "--chunk", "256", "--exact"]);
    let alone = json(&common);
    assert!(alone["npu"].is_null(), "{alone}");
    let ways: [&[&str]; 3] = [
        &["--npu", "spill"],
        &["--npu", "spill", "--memory", "500M", "--npu-memory", "60M"],
        &["--npu", "spill", "--devices", "stand-in=8M"],
    ];
    for way in ways {
        let beside = json(&[&common[..], way].concat());
        assert_eq!(beside["tokens"], alone["tokens"], "{way:?}");
        assert!(number(&beside["npu"]["device_share"]) > 0.1, "{way:?}: {}", beside["npu"]);
        assert_eq!(number(&beside["npu"]["drop_rate"]), 0.0);
    }
}

#[test]
fn serve_says_the_same() {
    let Some(model) = files().and_then(|_| floats()) else { return };
    let request = value!({ "model": "m", "prompt": prompt(), "max_tokens": 8, "temperature": 0 });
    let said = |args: &[&str]| {
        let common = ["--chunk", "256", "--exact", "--streams", "1"];
        let server = Server::start(&model, &[&common[..], args].concat());
        let (status, answer) = server.post("/v1/completions", &request);
        assert_eq!(status, 200, "{answer}");
        answer["choices"][0]["text"].clone()
    };
    assert_eq!(said(&["--npu", "spill"]), said(&[]));
}

#[test]
fn what_graphs_cannot_have_is_refused() {
    let Some(model) = files().and_then(|_| floats()) else { return };
    let refused = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
        let output =
            command.args(support::continued(model.to_str().unwrap(), "a", &[])).args(args).output();
        let output = output.expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said =
        refused(&["--npu", "spill", "--memory", "400M", "--context", "4096", "--npu-memory", "1G"]);
    assert!(said.contains("--npu-memory") && said.contains("400.0 MiB"), "{said}");
    let said = refused(&["--npu", "spill", "--npu-library", "/nowhere.so"]);
    assert!(said.contains("--npu") && said.contains("/nowhere.so"), "{said}");
}
