//! What the tests of the `motley` binary share: models, and runs of one engine in
//! a process of its own (`motley measure-job`).

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]

pub(crate) mod changed;
pub(crate) mod gateway;
pub(crate) mod hub;
pub(crate) mod server;

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) use motley_testkit::fixtures::{
    dense as smollm2, python, shared, synthetic as synth, synthetic_of as synth_request, trained,
    upcycled,
};

/// Which engine runs, and where its expert weights live.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) bare: bool,
    pub(crate) on_demand: bool,
    pub(crate) repack: bool,
    /// Slots for experts beyond the least; `None` leaves room for all.
    pub(crate) spare_slots: Option<u32>,
}

pub(crate) const BARE: Way = Way { bare: true, on_demand: false, repack: true, spare_slots: None };
pub(crate) const BARE_PLAIN: Way =
    Way { bare: true, on_demand: false, repack: false, spare_slots: None };
pub(crate) const REPACKED: Way =
    Way { bare: false, on_demand: false, repack: true, spare_slots: None };
pub(crate) const MAPPED: Way =
    Way { bare: false, on_demand: false, repack: false, spare_slots: None };
pub(crate) const ON_DEMAND: Way =
    Way { bare: false, on_demand: true, repack: false, spare_slots: None };

/// The least memory that works: two slots for all experts of the model.
pub(crate) const SMALLEST: Way = Way { spare_slots: Some(0), ..ON_DEMAND };
/// A few slots more, so that some experts stay.
pub(crate) const SMALL: Way = Way { spare_slots: Some(9), ..ON_DEMAND };

/// Shape of the jobs' sessions.
pub(crate) const SHAPE: motley_plan::budget::SessionShape = motley_plan::budget::SessionShape {
    context_tokens: 1024,
    kv: motley_model::KvType::F16,
    windows: false,
    chunk_tokens: 512,
    output_tokens: 1,
    states: 1,
};

/// A worker's job with one thread: a second spinning thread makes tests that run
/// side by side slow, not different.
pub(crate) fn job(model: &Path, way: Way) -> Value {
    let memory = way.spare_slots.map(|slots| {
        let (spec, _) = motley_model::ModelSpec::open(model).expect("a model");
        let budget = motley_plan::budget::Budget::of(&spec, SHAPE);
        budget.smallest_bytes() + u64::from(slots) * budget.slot_bytes
    });
    json!({
        "model": model, "bare": way.bare, "on_demand": way.on_demand, "repack": way.repack,
        "memory": memory, "threads": 1, "context": 1024, "chunk": 512, "prefill": 512, "decode": 64, "repeat": 1,
    })
}

/// `motley run` that continues `prompt` with the most likely tokens, and `rest` of its flags.
pub(crate) fn continued<'a>(model: &'a str, prompt: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", model, "-p", prompt, "--raw", "--temperature", "0"];
    [&run[..], rest].concat()
}

/// Runs `motley` with `args`. The user's own last run and calibrations stay out of it.
pub(crate) fn motley(args: &[&str]) -> Output {
    motley_in(Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/state")), args)
}

/// As [`motley`], with the last run kept in `state`.
pub(crate) fn motley_in(state: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_motley"))
        .env("MOTLEY_STATE", state)
        .env("MOTLEY_CONFIG", concat!(env!("CARGO_TARGET_TMPDIR"), "/config"))
        // No test waits for the measurement of a first run, but the one that is about it.
        .env("CI", "true")
        .args(args)
        .output()
        .expect("motley starts")
}

/// Runs a job; its outcome.
pub(crate) fn work(job: &Value) -> Value {
    let mut child = Command::new(env!("CARGO_BIN_EXE_motley"))
        .arg("measure-job")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("motley starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(job.to_string().as_bytes()).expect("the worker reads its job");
    drop(stdin);
    let output = child.wait_with_output().expect("the worker ends");
    assert!(output.status.success(), "worker failed on {job}");
    serde_json::from_slice(&output.stdout).expect("the worker answers in JSON")
}

/// Runs a job; its outcome and its logits, bytes as they are.
pub(crate) fn work_with_logits(mut job: Value) -> (Value, Vec<u8>) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    job["logits"] = json!(file.path());
    let outcome = work(&job);
    (outcome, std::fs::read(file.path()).expect("the worker wrote its logits"))
}
