//! What a newcomer meets: errors name the file and what to do, `--json` is JSON,
//! pipes stay quiet.

mod support;

use motley_testkit::synth::Arch;
use serde_json::Value;
use support::motley;

fn error_of(args: &[&str]) -> String {
    let output = motley(args);
    assert!(!output.status.success(), "{args:?} should fail");
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(text.starts_with("motley: ") || text.starts_with("error: "), "{text}");
    text
}

#[test]
fn a_missing_model_is_named() {
    let missing = "no/such/model.gguf";
    for args in [&["run", missing, "-p", "x"][..], &["inspect", missing], &["bench", missing]] {
        assert!(error_of(args).contains(missing), "{args:?}");
    }
}

#[test]
fn a_file_that_is_no_model_is_refused_by_our_own_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.gguf");
    std::fs::write(&path, "these are notes, and not a model at all").unwrap();
    let text = error_of(&support::continued(path.to_str().unwrap(), "x", &[]));
    assert!(text.contains("notes.gguf") && text.contains("GGUF"), "{text}");
}

#[test]
fn a_wrong_flag_is_explained() {
    assert!(error_of(&["run", "m.gguf", "--loading", "magic"]).contains("on-demand"));
}

#[test]
fn too_small_a_context_names_the_flag() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let prompt = "word ".repeat(200);
    let model = model.to_str().unwrap();
    assert!(
        error_of(&support::continued(model, &prompt, &["--context", "64"])).contains("--context")
    );
}

/// Address space for the stacks of a few threads, and not of hundreds.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_the_system_refuses_name_the_flag() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let run = format!(
        "ulimit -s 8192; ulimit -v 3000000; exec {} run {} -p x -n 1 --threads 500 --no-record",
        env!("CARGO_BIN_EXE_motley"),
        model.display()
    );
    let output = std::process::Command::new("sh").args(["-c", &run]).output().expect("a shell");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot start 500 threads") && said.contains("--threads"), "{said}");
}

#[test]
fn text_goes_to_stdout_and_the_chosen_line_to_stderr() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let output = motley(&support::continued(model.to_str().unwrap(), "Hello", &["-n", "4", "-v"]));
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("16 experts, 4 per token"), "{said}");
    assert!(said.contains("0 delegated"), "{said}");
    assert!(!output.stdout.is_empty());
}

#[test]
fn inspect_speaks_json() {
    let Some(model) = support::synth(Arch::Deepseek2) else { return };
    let output = motley(&["inspect", model.to_str().unwrap(), "--json"]);
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(summary["architecture"], "deepseek2");
}

/// Documents and clients are made of it without a server.
#[test]
fn openapi_prints_what_the_server_answers() {
    let output = motley(&["openapi"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(document["paths"]["/v1/chat/completions"]["post"].is_object(), "{document}");
}

#[test]
fn bench_reports_ratios_of_pairs() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let model = model.to_str().unwrap();
    let args =
        ["bench", model, "--pairs", "2", "--prefill", "64", "--decode", "4", "--repeat", "1"];
    let output = motley(&[&args[..], &["--json", "--threads", "1"]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["pairs"].as_array().unwrap().len(), 2);
    assert_eq!(report["same_tokens"], true);
    assert_eq!(report["delegated"], 0);
    assert!(report["phases"][1]["ratio"]["median"].as_f64().unwrap() > 0.0);
}

#[test]
fn too_small_a_budget_says_what_is_needed_before_loading() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let text = error_of(&support::continued(model.to_str().unwrap(), "x", &["--memory", "16M"]));
    assert!(text.contains("16 MiB is too little") && text.contains("--context"), "{text}");
}
