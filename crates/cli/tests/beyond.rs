//! Beyond RAM: whatever stays, is guessed or goes wrong, the tokens are those of the bare
//! engine; the budget holds; a killed process leaves nothing that hinders the next.

mod support;

use motley_testkit::synth::Arch;
use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{BARE_PLAIN, SMALL, job, work, work_with_logits};

#[test]
fn every_policy_and_prefetcher_gives_the_same_logits() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let shorter = |way| {
        let mut job = job(&model, way);
        job["prefill"] = json!(96);
        job["decode"] = json!(24);
        job
    };
    let (_, expected) = work_with_logits(shorter(BARE_PLAIN));
    let named = |policy: &str, prefetch: &str| {
        let mut job = shorter(SMALL);
        job["policy"] = json!(policy);
        job["prefetch"] = json!(prefetch);
        work_with_logits(job)
    };
    for policy in ["lru", "lfu", "lfru", "mrs", "blend"] {
        assert!(named(policy, "none").1 == expected, "{policy}");
    }
    for prefetch in [
        "previous-token",
        "next-layer",
        "next-layers-decode",
        "prefill-counted",
        "next-layer+refill",
    ] {
        let (outcome, logits) = named("blend", prefetch);
        assert!(logits == expected, "{prefetch}");
        let guesses = outcome["record"]["decode"]["guessed_loads"].as_u64().unwrap();
        assert!(guesses > 0 || prefetch == "prefill-counted", "{prefetch} guessed nothing");
    }
}

#[test]
fn buffered_reads_and_loading_before_computing_change_no_bit() {
    let Some(model) = support::synth(Arch::GptOss) else { return };
    let with = |key: &str| {
        let mut job = job(&model, SMALL);
        job["prefill"] = json!(64);
        job["decode"] = json!(8);
        job[key] = json!(true);
        work_with_logits(job).1
    };
    assert!(with("buffered") == with("serial"));
}

#[test]
fn a_killed_process_does_not_hinder_the_next() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let mut long = job(&model, SMALL);
    long["decode"] = json!(500);
    let mut child = Command::new(env!("CARGO_BIN_EXE_motley"))
        .arg("measure-job")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("motley starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(long.to_string().as_bytes()).expect("the worker reads its job");
    drop(stdin);
    std::thread::sleep(Duration::from_millis(700));
    child.kill().expect("it can be killed");
    assert!(!child.wait().expect("it ends").success(), "it was killed while it worked");
    let mut short = job(&model, SMALL);
    short["decode"] = json!(4);
    assert_eq!(work(&short)["tokens"].as_array().unwrap().len(), 4);
}

#[test]
fn a_run_recorded_can_be_run_again_in_virtual_time() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (trace, stats) = (folder.path().join("t.jsonl"), folder.path().join("s.json"));
    let (spec, _) = motley_model::ModelSpec::open(&model).unwrap();
    let budget = motley_plan::budget::Budget::of(&spec, support::SHAPE);
    let memory = budget.bytes_with(24).to_string();
    let model = model.display().to_string();
    let args =
        ["trace", "record", &model, "-p", "one two three four", "-n", "16", "--threads", "1"];
    // Guesses come as fast as the disk is, so only without them are hits predicted exactly.
    let more = ["--context", "1024", "--memory", &memory, "--prefetch", "none"];
    let files = ["-o", trace.to_str().unwrap(), "--stats", stats.to_str().unwrap()];
    let recorded = support::motley(&[&args[..], &more, &files].concat());
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let again = support::motley(&[
        "sim",
        "--trace",
        trace.to_str().unwrap(),
        "--run",
        stats.to_str().unwrap(),
        "--json",
    ]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let compared: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(compared["decode"]["tokens"], 15);
    let (real, simulated) = (&compared["hit_rate"][0], &compared["hit_rate"][1]);
    let difference = real.as_f64().unwrap() - simulated.as_f64().unwrap();
    assert!(difference.abs() < 0.02, "{real} of the experts in memory, simulated {simulated}");
}
