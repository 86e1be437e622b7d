//! `motley run --speculate`: what is guessed ahead is recorded and told, and what does not go with it
//! is refused or left off with the reason.

mod support;

use motley_testkit::synth::Arch;
use motley_trace::RunRecord;
use std::path::Path;
use std::process::Output;
use support::{continued, motley, motley_in};

const REPEATS: &str = "one two three four five one two three four five one two three four five one";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// Long enough that a guess can be afforded, however long single passes take.
fn run(state: &Path, model: &Path, rest: &[&str]) -> Output {
    let model = model.to_str().expect("UTF-8");
    let rest = [&["-n", "160", "--context", "512", "--speculate", "auto"], rest].concat();
    motley_in(state, &continued(model, REPEATS, &rest))
}

#[test]
fn guesses_are_in_the_record_and_a_replay_is_not_made_of_them() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let state = tempfile::tempdir().expect("a folder");
    let stats = state.path().join("run.json");
    let stats = stats.to_str().expect("UTF-8");
    // A model of random weights says little twice unless it is told to.
    let asked = ["--loading", "on-demand", "--repeat-penalty", "0.1", "--stats", stats, "-v"];
    let output = run(state.path(), &model, &asked);
    let told = said(&output);
    assert!(output.status.success() && told.contains("tokens per pass"), "{told}");
    let record = RunRecord::parse(&std::fs::read_to_string(stats).expect("a record")).unwrap();
    let made = record.speculation.expect("figures of guesses");
    assert!(made.guessed > 0, "{made}");
    assert_eq!(record.decode.tokens, made.passes + made.accepted);
    assert!(!state.path().join("last-trace.jsonl").exists(), "routing is not kept");
    let page = said(&motley_in(state.path(), &["explain"]));
    assert!(page.contains("tokens per pass") && page.contains("guessed ahead"), "{page}");
    let trace = state.path().join("any.jsonl");
    let routing = r#"{"motley_trace":1,"model":"m","layers":1,"experts":4,"k":2}
{"p":0,"l":0,"t":[0],"e":[1,2]}
"#;
    std::fs::write(&trace, routing).expect("a file");
    let again = motley(&["sim", "--run", stats, "--trace", trace.to_str().expect("UTF-8")]);
    assert!(!again.status.success() && said(&again).contains("--speculate off"), "{again:?}");
}

#[test]
fn where_tokens_are_computed_one_by_one_it_is_said_why() {
    let state = tempfile::tempdir().expect("a folder");
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let exact = run(state.path(), &model, &["--exact"]);
    let told = said(&exact);
    assert!(exact.status.success() && told.contains("guessed ahead: --exact"), "{told}");
    let drawn = run(state.path(), &model, &["--loading", "on-demand", "--timeline", "t.json"]);
    assert!(!drawn.status.success() && said(&drawn).contains("leave out --speculate"), "{drawn:?}");
    let Some(model) = support::synth(Arch::Qwen35moe) else { return };
    let recurrent = run(state.path(), &model, &[]);
    let told = said(&recurrent);
    assert!(recurrent.status.success() && told.contains("takes none back"), "{told}");
}
