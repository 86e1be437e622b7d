//! `motley serve --prefix-cache`: another process goes on where one was killed, inside the sandbox,
//! and what the flag cannot have is refused.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::server::Server;

const PATIENCE: Duration = Duration::from_secs(60);

/// The answer to a prompt of about 1,300 tokens.
fn answer(server: &Server) -> Value {
    let prompt: Vec<i32> = (0..1300).map(|at| 300 + at * 37 % 20_000).collect();
    let request = json!({ "model": "m", "prompt": prompt, "max_tokens": 6, "temperature": 0 });
    let (status, answer) = server.post("/v1/completions", &request);
    assert_eq!(status, 200, "{answer}");
    answer
}

fn cached(answer: &Value) -> u64 {
    answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().expect("a number")
}

#[test]
fn a_server_that_was_killed_left_its_prompts_on_disk() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("prefixes");
    let shown = folder.to_str().expect("UTF-8");
    let args = ["--context", "4096", "--prefix-cache", "1G", "--prefix-folder", shown];
    let (first, begun) = (Server::start(&model, &args), Instant::now());
    let said = answer(&first);
    assert_eq!(cached(&said), 0);
    while segments(&folder) < 5 {
        assert!(begun.elapsed() < PATIENCE, "{} segments", segments(&folder));
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(first);
    let again = Server::start(&model, &args);
    let said_again = answer(&again);
    assert_eq!(said_again["choices"], said["choices"]);
    assert_eq!(cached(&said_again), 1280);
    let metrics = again.get("/metrics").1;
    assert!(metrics.contains("motley_loaded_prompt_tokens_total 1280"), "{metrics}");
}

fn segments(folder: &Path) -> usize {
    let names = fs::read_dir(folder).expect("made at the start").flatten();
    names.filter(|entry| entry.path().extension().is_some_and(|end| end == "segment")).count()
}

#[test]
fn what_cannot_be_kept_on_disk_is_refused() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let file = tempfile::NamedTempFile::new().expect("a file");
    let taken = file.path().to_str().expect("UTF-8");
    for (args, said) in [
        (&["--prefix-cache", "1G", "--exact"][..], "--exact"),
        (&["--prefix-cache", "1G", "--no-share-prefix"], "--no-share-prefix"),
        (&["--prefix-cache", "1G", "--stream-context", "512"], "--stream-context"),
        (&["--prefix-folder", "x"], "--prefix-cache"),
        (&["--prefix-cache", "1G", "--prefix-folder", taken], taken),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
        let output = command.arg("serve").arg(&model).args(["--port", "0"]).args(args).output();
        let output = output.expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(said), "{args:?}: {error}");
    }
}
