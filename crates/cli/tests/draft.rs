//! `motley run --draft`: a small model guesses, its memory comes out of the budget, what it did is
//! recorded and told, and what cannot draft is refused with the reason and both names.

mod support;

use motley_plan::Decision;
use motley_testkit::synth::Arch;
use motley_trace::RunRecord;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::{continued, motley_in};

const PROMPT: &str =
    "The quick brown fox jumps over the lazy dog. The history of the city of Paris";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A mixture whose function is the dense model's, which is then the best draft there can be.
fn models() -> Option<(PathBuf, PathBuf)> {
    Some((support::upcycled(16, 4)?, support::smollm2()?))
}

fn run(state: &Path, (model, draft): (&Path, &Path), rest: &[&str]) -> Output {
    let rest = [&["--context", "512", "--draft", utf8(draft)], rest].concat();
    motley_in(state, &continued(utf8(model), PROMPT, &rest))
}

fn refused(output: &Output, words: &[&str]) {
    let told = said(output);
    assert!(!output.status.success(), "{told}");
    words.iter().for_each(|word| assert!(told.contains(word), "{word}: {told}"));
}

#[test]
fn what_a_draft_model_guesses_is_right_where_it_is_the_same_function() {
    let Some((model, draft)) = models() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let stats = state.path().join("run.json");
    let asked = ["-n", "60", "--threads", "1", "--stats", utf8(&stats), "-v"];
    let output = run(state.path(), (&model, &draft), &asked);
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("draft model") && told.contains("of memory, guesses within 512"),
        "{told}"
    );
    assert!(told.contains("the draft model took"), "{told}");
    let record = RunRecord::parse(&std::fs::read_to_string(stats).expect("a record")).unwrap();
    let made = record.speculation.and_then(|made| made.draft).expect("figures of a draft");
    println!(
        "{:?}; {:.2} s of {:.2} s",
        record.speculation, record.decode.draft_s, record.decode.time_s
    );
    // Whether asking pays depends on the machine: the dense model takes much of a pass's time.
    assert_eq!(made.drafted > 0, record.decode.draft_s > 0.0, "{made:?}");
    // Kernels that differ in their last bits change a word now and then.
    assert!(made.accepted * 10 >= made.guessed * 8, "{made:?}");
    assert!(record.prefill.draft_s > 0.0, "it followed the prompt");
    let page = said(&motley_in(state.path(), &["explain"]));
    assert!(page.contains("draft model"), "{page}");
    let output = run(state.path(), (&model, &draft), &["-n", "8", "--json", "--no-record"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(json["speculation"]["draft"]["drafted"].is_u64(), "{json}");
    assert!(json["draft_times"]["prefill_s"].as_f64() > Some(0.0), "{json}");
}

#[test]
fn its_memory_comes_out_of_the_budget_or_it_is_refused_with_figures() {
    let Some((model, draft)) = models() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let decided = |flags: &[&str]| {
        let rest = [&["-n", "2", "--context", "512", "-v", "--no-record"], flags].concat();
        let output = motley_in(state.path(), &continued(utf8(&model), PROMPT, &rest));
        let told = said(&output);
        assert!(output.status.success(), "{told}");
        let json = told.lines().filter_map(|line| line.split_once("decided: ")).next_back();
        Decision::from_json(json.expect("a decision").1).expect("a decision")
    };
    let alone = decided(&["--memory", "700M", "--speculate", "auto"]);
    let beside = decided(&["--memory", "700M", "--draft", utf8(&draft)]);
    let (alone, beside) = (alone.memory_bytes.unwrap(), beside.memory_bytes.unwrap());
    let file = std::fs::metadata(&draft).expect("a file").len();
    assert!(alone - beside > file && alone - beside < file + (200 << 20), "{alone} {beside}");
    let little = run(state.path(), (&model, &draft), &["--memory", "200M"]);
    refused(&little, &["--draft", utf8(&draft), utf8(&model), "too little for both", "MiB"]);
    let less = run(state.path(), (&model, &draft), &["--memory", "60M"]);
    refused(&less, &["--draft", "too little for both"]);
}

#[test]
fn what_cannot_draft_is_refused_with_the_reason() {
    let Some((model, draft)) = models() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let here = state.path();
    if let Some(other) = support::trained("f16") {
        let output = run(here, (&model, &other), &[]);
        refused(&output, &[utf8(&model), utf8(&other), "its vocabulary is not that of", "tokens"]);
    }
    refused(&run(here, (&model, &draft), &["--speculate", "off"]), &["leave one of the two out"]);
    for flag in [&["--exact"][..], &["--plan", "p.json"]] {
        refused(&run(here, (&model, &draft), flag), &["cannot be used with", "--draft"]);
    }
    let drawn = run(here, (&model, &draft), &["--memory", "700M", "--timeline", "t.json"]);
    refused(&drawn, &["leave out --speculate and --draft"]);
    let Some(recurrent) = support::synth(Arch::Qwen35moe) else { return };
    let Some(plain) = support::synth(Arch::Qwen3moe) else { return };
    refused(&run(here, (&plain, &recurrent), &[]), &["--draft", "takes none back"]);
    refused(&run(here, (&recurrent, &plain), &[]), &["would guess nothing", "takes none back"]);
}
