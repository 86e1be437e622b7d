//! The sandbox around the real commands: it is on, for every thread, and nothing they do is missing.
//! What it refuses is tried in `crates/host/tests/sandbox.rs`.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod support;

use motley_model::ModelSpec;
use motley_plan::budget::{Budget, SessionShape};
use motley_testkit::synth::Arch;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::motley_in;
use support::server::{Server, continuation};

/// `Seccomp:` of a thread with a filter (proc(5)).
const FILTERED: &str = "2";

/// What `key` says of every thread of `server`.
fn of_threads(server: &Server, key: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("a process");
    let status = tasks.flatten().filter_map(|task| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.path().join("status")).ok()
    });
    let value = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {key}")).trim().to_owned()
    };
    status.map(value).collect()
}

fn model() -> Option<PathBuf> {
    support::synth(Arch::Qwen3moe)
}

/// The least memory with which experts come from the disk.
fn least(model: &Path, outputs: u32) -> String {
    let (spec, _) = ModelSpec::open(model).expect("a model");
    let shape = SessionShape { chunk_tokens: 256, output_tokens: outputs, ..support::SHAPE };
    Budget::of(&spec, shape).smallest_bytes().to_string()
}

fn answers(server: &Server) -> String {
    let (status, answer) = server.post("/v1/completions", &continuation("One two", 8, false));
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0]["text"].as_str().expect("text").to_owned()
}

#[test]
fn every_thread_of_a_server_is_restricted_and_it_serves_all_the_same() {
    let Some(model) = model() else { return };
    let mut server = Server::start(&model, &["--exact", "--streams", "2", "--context", "1024"]);
    let said = answers(&server);
    for (key, value) in [("Seccomp", FILTERED), ("NoNewPrivs", "1")] {
        let found = of_threads(&server, key);
        assert!(found.len() > 3 && found.iter().all(|found| found == value), "{key}: {found:?}");
    }
    assert_eq!(server.get("/health").0, 200);
    // The answer is sent before its end is counted.
    let ended = || server.metric("motley_requests_active") == 0.0;
    let ends_soon = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        ended()
    });
    assert!(ends_soon);
    server.stop();
    let free = Server::start(&model, &["--exact", "--context", "1024", "--sandbox", "off"]);
    assert!(of_threads(&free, "Seccomp").iter().all(|found| found == "0"));
    assert_eq!(answers(&free), said);
}

#[test]
fn experts_come_from_the_disk_inside_the_sandbox() {
    let Some(model) = model() else { return };
    let memory = least(&model, 2);
    let args = ["--exact", "--memory", &memory, "--context", "1024", "--chunk", "256"];
    let server = Server::start(&model, &[&args[..], &["--streams", "2"]].concat());
    let said = answers(&server);
    assert_eq!(answers(&server), said);
    assert!(server.metric("motley_expert_read_bytes_total") > 0.0);
    assert!(of_threads(&server, "Seccomp").iter().all(|found| found == FILTERED));
}

/// In memory and from the disk: what a run keeps and what flags name is written.
#[test]
fn a_run_writes_what_it_writes_without_it() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (state, named) = (folder.path().join("state"), folder.path().join("named"));
    std::fs::create_dir(&named).expect("a folder");
    let (memory, stats) = (least(&model, 1), named.join("stats.json"));
    let mut run =
        support::continued(model.to_str().unwrap(), "One", &["-n", "4", "-v", "--threads", "1"]);
    run.extend(["--context", "1024", "--chunk", "256", "--sandbox", "require"]);
    run.extend(["--stats", stats.to_str().unwrap()]);
    for more in [&[][..], &["--memory", &memory]] {
        let output = motley_in(&state, &[&run[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        if motley_engine::sandbox::offered().landlock_abi.is_none() {
            println!("SKIPPED: this kernel offers no Landlock");
            assert!(said.contains("--sandbox require"), "{said}");
            return;
        }
        assert!(output.status.success(), "{said}");
        let held =
            said.lines().find(|line| line.contains("sandbox: restricted: files by Landlock"));
        let held = held.unwrap_or_else(|| panic!("{said}"));
        assert!(held.ends_with("; system calls by seccomp"), "{held}");
        assert!(!held.contains("there before"), "threads started too early: {held}");
        for kept in [state.join("last-run.json"), stats.clone()] {
            let text = std::fs::read_to_string(&kept).expect("kept");
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
            std::fs::remove_file(kept).expect("removed");
        }
        assert_eq!(state.join("last-trace.jsonl").exists(), !more.is_empty());
    }
}
