//! A model's file that somebody writes to or cuts while its weights are in use: never an answer
//! computed from other bytes, never the end of the process.

use motley_engine::{
    Engine, EngineError, EngineOptions, Runtime, Seam, Session, SessionError, SessionOptions,
    ThreadSet, ThreadSets,
};
use motley_ggml::DecodeError;
use motley_model::ModelSpec;
use motley_testkit::fixtures::synthetic;
use motley_testkit::synth::Arch;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A copy of the test model that may be spoilt.
fn copied(folder: &tempfile::TempDir) -> Option<PathBuf> {
    let path = folder.path().join("victim.gguf");
    std::fs::copy(synthetic(Arch::Qwen3moe)?, &path).expect("room for a small model");
    Some(path)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Weights where they lie in the file, unless they are rearranged.
fn engine(path: &Path, repack: bool) -> Engine {
    let options = options(repack);
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Engine::load(runtime, path, &options, &mut |_| true).expect("the model loads")
}

fn options(repack: bool) -> EngineOptions {
    EngineOptions {
        repack,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        yields_cores: false,
        ..EngineOptions::default()
    }
}

fn session(engine: &Engine) -> Session {
    let shape = SessionOptions { context_tokens: 256, chunk_tokens: 64, ..Default::default() };
    engine.session(&shape).expect("a session")
}

fn writable(path: &Path) -> File {
    File::options().write(true).open(path).expect("it is there")
}

/// Later than any time a file system with coarse clocks has given the model.
fn touch(file: &File) {
    let time = file.metadata().and_then(|found| found.modified()).expect("a time");
    file.set_modified(time + Duration::from_secs(2)).expect("its time can be set");
}

fn assert_refused(result: Result<(), SessionError>) {
    match result {
        Err(SessionError::Decode(error @ DecodeError::ModelChanged { .. })) => {
            assert!(error.to_string().contains("victim.gguf"), "the file is named: {error}");
        }
        other => panic!("a changed file gave {other:?}"),
    }
}

#[test]
fn a_file_overwritten_while_mapped_gives_no_answer() {
    let folder = folder();
    let Some(path) = copied(&folder) else { return };
    let engine = engine(&path, false);
    let mut before = session(&engine);
    before.prefill(&[1, 2, 3]).expect("all is well");
    let file = writable(&path);
    let len = file.metadata().expect("a length").len();
    file.write_all_at(&vec![0x5a; len as usize / 4], len / 2).expect("it can be written");
    touch(&file);
    assert_refused(before.decode(4));
    assert_refused(session(&engine).prefill(&[1, 2, 3]));
    assert_refused(before.decode(4));
}

#[test]
fn a_file_cut_while_mapped_gives_no_answer_and_the_process_lives() {
    let folder = folder();
    let Some(path) = copied(&folder) else { return };
    let engine = engine(&path, false);
    let mut session = session(&engine);
    session.prefill(&[1, 2, 3]).expect("all is well");
    writable(&path).set_len(4096).expect("it can be cut");
    assert_refused(session.decode(4));
    assert_refused(session.decode(4));
}

/// The cut comes while kernels read: they meet pages that are gone.
#[test]
fn a_file_cut_while_kernels_read_it_gives_no_answer_and_the_process_lives() {
    let folder = folder();
    let Some(path) = copied(&folder) else { return };
    let engine = engine(&path, false);
    let mut session = session(&engine);
    session.prefill(&[1, 2, 3]).expect("all is well");
    let prompt: Vec<i32> = (0..64).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            writable(&path).set_len(4096).expect("it can be cut");
        });
        let error = (0..10_000).find_map(|_| {
            session.truncate(3);
            session.prefill(&prompt).err()
        });
        assert_refused(error.map_or(Ok(()), Err));
    });
}

#[test]
fn rearranged_weights_are_ours_and_the_file_may_go() {
    let folder = folder();
    let Some(path) = copied(&folder) else { return };
    let engine = engine(&path, true);
    let logits = || {
        let mut session = session(&engine);
        session.prefill(&[1, 2, 3]).expect("all is well");
        session.logits().to_vec()
    };
    let before = logits();
    writable(&path).set_len(4096).expect("it can be cut");
    assert!(logits() == before);
}

#[test]
fn a_file_replaced_by_another_goes_on_as_it_was() {
    let folder = folder();
    let Some(path) = copied(&folder) else { return };
    let engine = engine(&path, false);
    let mut session = session(&engine);
    session.prefill(&[1, 2, 3]).expect("all is well");
    let other = folder.path().join("new.gguf");
    std::fs::write(&other, "another model").expect("a small file");
    std::fs::rename(&other, &path).expect("it takes the name");
    session.decode(4).expect("our bytes are those of before");
}

#[test]
fn a_file_changed_between_its_header_and_its_weights_is_not_loaded() {
    let folder = folder();
    let Some(path) = copied(&folder) else { return };
    let opened = ModelSpec::open(&path).expect("it reads");
    touch(&writable(&path));
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let loaded = Engine::load_opened(runtime, opened, &options(false), &mut |_| true);
    assert!(matches!(loaded, Err(EngineError::Changed { .. })));
}
