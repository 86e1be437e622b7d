//! A failing disk under a running session: what can be read again is, what cannot ends the
//! step with an error that names the file, and the session goes on.

use motley_engine::{
    Engine, EngineOptions, FaultPlan, Loading, Runtime, Seam, Session, SessionError,
    SessionOptions, StreamingOptions, ThreadSet, ThreadSets,
};
use motley_plan::budget::Budget;
use motley_testkit::fixtures::synthetic;
use motley_testkit::synth::Arch;
use std::path::{Path, PathBuf};

const SHAPE: SessionOptions = SessionOptions {
    context_tokens: 256,
    chunk_tokens: 64,
    kv: motley_model::KvType::F16,
    windows: false,
    precise_attention: false,
    scores: false,
    speculate: motley_engine::Speculate::Off,
};

fn model() -> Option<PathBuf> {
    synthetic(Arch::Qwen3moe)
}

/// The model with room for a few experts.
fn engine(path: &Path, faults: Option<FaultPlan>) -> Engine {
    let (spec, _) = motley_model::ModelSpec::open(path).expect("a model");
    let budget = Budget::of(&spec, SHAPE.shape());
    let options = EngineOptions {
        loading: Loading::OnDemand,
        repack: false,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        memory_bytes: Some(budget.bytes_with(8)),
        streaming: StreamingOptions { faults, ..StreamingOptions::default() },
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Engine::load(runtime, path, &options, &mut |_| true).expect("the model loads")
}

/// Computes tokens one by one, each again until it goes through; how often one did not.
fn insist(session: &mut Session, tokens: std::ops::Range<i32>) -> u32 {
    let mut failures = 0;
    for token in tokens {
        while let Err(error) = session.decode(token) {
            assert!(matches!(error, SessionError::Decode(_)), "{error}");
            let said = error.to_string();
            assert!(said.contains(".gguf"), "the file is named: {said}");
            failures += 1;
            assert!(failures < 2000, "it never goes through");
        }
    }
    failures
}

#[test]
fn errors_and_short_reads_end_a_step_and_not_the_session() {
    let Some(path) = model() else { return };
    let logits = |faults| {
        let engine = engine(&path, faults);
        let mut session = engine.session(&SHAPE).expect("a session");
        let failures = insist(&mut session, 100..112);
        (session.logits().to_vec(), failures, session.stats())
    };
    let (expected, none, _) = logits(None);
    assert_eq!(none, 0);
    let plan =
        FaultPlan { seed: 3, eio_per_mille: 120, short_per_mille: 60, ..FaultPlan::default() };
    let (got, failures, stats) = logits(Some(plan));
    let retries = stats.stream.expect("experts are streamed").disk.retries;
    assert!(
        retries > 0 && failures > 0,
        "{retries} retries and {failures} failures: too kind a disk"
    );
    assert!(got == expected, "logits differ after {failures} failed steps");
}

#[test]
fn a_file_cut_short_while_running_is_named_and_the_process_lives() {
    let Some(path) = model() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("cut.gguf");
    std::fs::copy(&path, &copy).expect("room for a small model");
    let engine = engine(&copy, None);
    let mut session = engine.session(&SHAPE).expect("a session");
    session.decode(5).expect("all is well");
    let file = std::fs::OpenOptions::new().write(true).open(&copy).expect("it is there");
    file.set_len(4096).expect("it can be cut");
    let failed = (6..60).find_map(|token| session.decode(token).err()).expect("experts are missed");
    assert!(failed.to_string().contains("cut.gguf"), "{failed}");
    let again = (60..120).find_map(|token| {
        let before = session.len();
        session.decode(token).err().map(|_| before)
    });
    assert_eq!(Some(session.len()), again, "a failed step leaves the session as it was");
}
