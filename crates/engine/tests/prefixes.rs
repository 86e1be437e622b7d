//! Beginnings of prompts on disk: another process goes on from what one computed, with the same
//! answer; what is damaged, or of another model, is computed.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]

#[path = "support/answers.rs"]
mod answers;

use answers::{answer, engine};
use motley_engine::batching::PrefixCache;
use motley_engine::{BatchOptions, Batching, Engine, Runtime, Seam};
use motley_model::KvType;
use motley_testkit::synth::Arch;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Attention alone, with windows, compressed, and beside recurrent layers.
const KINDS: [Arch; 5] =
    [Arch::Qwen3moe, Arch::GptOss, Arch::Deepseek2, Arch::Qwen35moe, Arch::Granitehybrid];
const ANSWER_TOKENS: usize = 8;
const PROMPT_TOKENS: i32 = 1100;
/// No file appears for so long once all are written.
const QUIET: Duration = Duration::from_secs(1);

fn start(engine: &Arc<Engine>, kv: KvType, folder: &Path) -> Batching {
    let options =
        BatchOptions { context_tokens: 4096, sequences: 3, kv, ..BatchOptions::default() };
    let cache =
        PrefixCache { folder: folder.to_owned(), most_bytes: 1 << 30, read_bytes_per_second: 1e9 };
    Batching::start(Arc::clone(engine), &options, Some(&cache), None).unwrap()
}

/// The segments of a folder, once no more come.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let list = || -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|e| e == "segment")).collect()
    };
    let (mut found, mut since) = (list(), Instant::now());
    while since.elapsed() < QUIET {
        std::thread::sleep(Duration::from_millis(20));
        let now = list();
        if now.len() != found.len() {
            (found, since) = (now, Instant::now());
        }
    }
    found
}

/// Tokens that are alike up to `same` and then of their own `kind`.
fn prompt(same: i32, kind: i32, end: i32) -> Vec<i32> {
    let token = |at: i32| 300 + (at * 37 + if at < same { 0 } else { kind * 1009 }) % 40_000;
    let mut tokens: Vec<i32> = (0..PROMPT_TOKENS).map(token).collect();
    // Messages end here.
    tokens[599] = end;
    tokens[PROMPT_TOKENS as usize - 4] = end;
    tokens
}

#[test]
fn a_restart_goes_on_from_the_disk_with_the_same_answer() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for arch in KINDS {
        let Some(model) = motley_testkit::fixtures::synthetic(arch) else { return };
        let engine = engine(runtime, &model);
        let end = engine.tokenize("<|im_end|>").unwrap()[0];
        let before = segments(folder).len();
        let (first, edited) = (prompt(700, 1, end), prompt(700, 2, end));
        let said = answer(&start(&engine, KvType::F16, folder), &first, ANSWER_TOKENS);
        assert_eq!(said.1, 0, "{arch}: models have nothing of each other");
        let written = segments(folder).len() - before;
        assert!(written >= 2, "{arch}: {written} segments");

        let batching = start(&engine, KvType::F16, folder);
        let (again, reused) = answer(&batching, &first, ANSWER_TOKENS);
        assert_eq!(again, said.0, "{arch}");
        assert!(reused >= 1024, "{arch}: {reused} tokens");
        let loaded = batching.figures().planner.loaded_tokens;
        assert!(loaded >= 1024, "{arch}: {loaded} tokens");
        let (_, reused) = answer(&start(&engine, KvType::F16, folder), &edited, ANSWER_TOKENS);
        assert!((512..=700).contains(&reused), "{arch}: {reused} tokens");
    }
}

#[test]
fn damage_and_other_caches_are_computed() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let Some(model) = motley_testkit::fixtures::synthetic(Arch::Qwen35moe) else { return };
    let engine = engine(runtime, &model);
    let end = engine.tokenize("<|im_end|>").unwrap()[0];
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let prompt = prompt(0, 1, end);
    let said = answer(&start(&engine, KvType::F16, folder), &prompt, ANSWER_TOKENS).0;
    let files = segments(folder);
    assert_eq!(answer(&start(&engine, KvType::Q8_0, folder), &prompt, ANSWER_TOKENS).1, 0);
    let path = files.iter().max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let path = path.unwrap();
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, &bytes).unwrap();
    let (again, reused) = answer(&start(&engine, KvType::F16, folder), &prompt, ANSWER_TOKENS);
    assert_eq!(again, said);
    assert!(reused < 1024, "{reused} tokens");
}
