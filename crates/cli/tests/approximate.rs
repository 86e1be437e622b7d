//! Approximations as typed: what a simulation says they would save, what an evaluation says they
//! cost, and the plan that goes by it.

mod support;

use motley_plan::Decision;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use support::motley;

/// `motley` with settings of its own.
fn with_settings(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_motley"))
        .env("MOTLEY_STATE", folder)
        .env("MOTLEY_CONFIG", folder)
        .env("CI", "1")
        .args(args)
        .output()
        .expect("motley starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// A model whose experts are on disk.
const BEYOND: [&str; 5] = ["sim", "--machine", "two-core-24gb", "--model-shape", "gpt-oss-120b"];

#[test]
fn a_simulation_says_what_would_be_left_out_and_saved() {
    let made = ["--prefill", "8", "--tokens", "200", "--json"];
    let sim = |more: &[&str]| json(&motley(&[&BEYOND[..], &made, more].concat()));
    let (whole, half, all) = (sim(&[]), sim(&["--skip-cold", "0.75"]), sim(&["--skip-cold", "1"]));
    assert!(whole["left_out"].is_null());
    let pairs = |report: &Value| number(&report["left_out"][0]);
    assert!(pairs(&half) > 0.0 && pairs(&half) < pairs(&all) && pairs(&all) < 1.0, "{half} {all}");
    assert!(number(&all["left_out"][1]) < pairs(&all), "what is left out weighs less: {all}");
    let loads = |report: &Value| number(&report["demand_loads"]);
    assert!(loads(&all) < loads(&half) && loads(&half) < loads(&whole), "{whole} {half} {all}");
    let speed = |report: &Value| number(&report["decode"]["tokens_per_s"]);
    assert!(speed(&all) > speed(&whole), "{whole} {all}");
    let fewer = sim(&["--experts", "2"]);
    assert!(number(&fewer["lookups"]) < 0.7 * number(&whole["lookups"]), "{fewer}");
    assert!(speed(&fewer) > speed(&whole), "{fewer}");
}

#[test]
fn a_simulation_refuses_what_it_cannot_leave_out() {
    let error = |args: &[&str]| {
        let output = motley(args);
        assert!(!output.status.success(), "{args:?} should fail");
        said(&output)
    };
    let in_memory = ["sim", "--skip-cold", "0.5"];
    assert!(error(&in_memory).contains("--skip-cold would leave nothing out"));
    let many = error(&[&BEYOND[..], &["--experts", "5"]].concat());
    assert!(many.contains("--experts 5: the trace has 4 experts per token"), "{many}");
    let Some(trace) = support::shared("routing_traces/waste-trace_olmoe_299.jsonl") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("trace.jsonl");
    let (trace, out) = (trace.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    json(&motley(&["trace", "import", trace, "--experts", "64", "-o", out, "--json"]));
    let large = ["--machine", "two-core-24gb", "--model-shape", "16x64x8:16384x8192"];
    let no_weights = [&["sim", "--trace", out, "--skip-cold", "0.5"], &large[..]].concat();
    assert!(error(&no_weights).contains("has no weights of its experts"));
}

#[test]
fn recorded_weights_say_what_would_be_left_out() {
    let Some(csv) = support::shared("routing_traces/bigmoe-qwen.route.csv") else { return };
    let csv = csv.to_str().expect("UTF-8");
    let sim = [
        "sim",
        "--machine",
        "two-core-24gb",
        "--trace",
        csv,
        "--cache",
        "30%",
        "--skip-cold",
        "0.5",
        "--json",
    ];
    let report = json(&motley(&sim));
    let (pairs, weight) = (number(&report["left_out"][0]), number(&report["left_out"][1]));
    assert!(pairs > 0.0 && weight > 0.0 && weight < 0.5 * pairs, "{report}");
}

#[test]
fn prices_are_measured_kept_and_chosen_by() {
    let (Some(model), Some(text)) = (
        support::shared("tiny-wiki-moe/tiny-wiki-moe-q8_0.gguf"),
        support::shared("tiny-wiki-moe/val.txt"),
    ) else {
        return;
    };
    let (model, text) = (model.to_str().expect("UTF-8"), text.to_str().expect("UTF-8"));
    let settings = tempfile::tempdir().expect("a folder");
    let motley = |args: &[&str]| with_settings(settings.path(), args);
    let plan = motley(&["plan", model, "--json", "--context", "512"]);
    let plan = Decision::from_json(&String::from_utf8_lossy(&plan.stdout)).expect("a plan");
    let memory = plan.budget.bytes_with(plan.budget.experts / 3).to_string();
    let run = ["--memory", &memory, "--context", "512", "--threads", "1", "--chunk", "64"];

    let choose = [&["plan", model, "--accept-kl", "0.5", "--json"], &run[..]].concat();
    let unmeasured = motley(&choose);
    assert!(!unmeasured.status.success());
    let words = said(&unmeasured);
    assert!(words.contains("no approximation of this model has been measured"), "{words}");
    assert!(words.contains("motley eval"), "{words}");

    let compare = ["--compare", "experts=3", "--compare", "skip-cold=1", "--compare", "experts=4"];
    let text = ["eval", model, "--text", text, "--items", "3", "--window", "40", "--json"];
    let report = json(&motley(&[&text[..], &compare, &run].concat()));
    let against = |setting: usize| &report["differences"][setting]["text"];
    let kl = |setting: usize| number(&against(setting)["divergence"]["kl"]["value"]);
    assert!(kl(0) > 0.0 && kl(0) < 2.0, "{report}");
    assert!(kl(1) > 0.0 && kl(1) < 2.0, "{report}");
    assert!(kl(2) < 1e-6, "its own number changes nothing: {report}");
    assert_eq!(number(&against(2)["divergence"]["same_top"]["value"]), 1.0);
    let runs = &report["runs"];
    assert!(number(&runs[2]["left_out"][0]) > 0.0 && runs[1]["left_out"].is_null(), "{report}");
    assert!((0..4).all(|run| number(&runs[run]["decode_per_s"]) > 0.0), "{report}");

    let folder = settings.path().join("prices");
    let file =
        std::fs::read_dir(folder).expect("a folder").next().expect("a file").expect("a name");
    let prices: Value =
        serde_json::from_slice(&std::fs::read(file.path()).expect("it reads")).expect("JSON");
    assert_eq!(prices["motley_prices"], 1);
    assert_eq!(prices["prices"].as_array().map(Vec::len), Some(2), "{prices}");
    assert_eq!(prices["prices"][0]["approximation"]["experts_used"], 3);

    // How fast is the machine's to say; that something is chosen, or why nothing, is ours.
    let chosen =
        motley(&choose.iter().map(|a| if *a == "0.5" { "9" } else { a }).collect::<Vec<_>>());
    match chosen.status.success() {
        true => {
            let plan =
                Decision::from_json(&String::from_utf8_lossy(&chosen.stdout)).expect("a plan");
            assert!(plan.why.approximate.is_some(), "{plan:?}");
            assert_ne!(plan.experts_used.is_some(), plan.rules.skip_cold.is_some());
        }
        false => {
            assert!(said(&chosen).contains("none is faster than the model as it is"), "{chosen:?}")
        }
    }
    let told = motley(&[&["plan", model, "--experts", "3"], &run[..]].concat());
    let page = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(page.contains("3 of the 4 experts") && page.contains("nats per token"), "{page}");
}
