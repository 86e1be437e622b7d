//! What clients, neighbours and wrong flags cannot do to a real server: memory, connections,
//! keys, names, readiness. Each test is a defect that was found; the numbers are those of the
//! issue on trust.

#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod support;

use motley_plan::budget::{Budget, SessionShape};
use motley_testkit::hostile;
use motley_testkit::synth::Arch;
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};
use support::server::{Server, continuation, post, until};

/// Most memory that refused requests may take, in KiB.
const GROWTH_KIB: u64 = 100 << 10;
const MIB: usize = 1 << 20;

/// 16-4: 101 KB took 1.6 GB before they were refused.
#[test]
fn no_prompt_and_many_are_refused_before_anything_is_built() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    assert_eq!(server.post("/v1/completions", &continuation("Good", 4, false)).0, 200);
    let before = server.peak_kib();
    let stops = vec!["z".repeat(256); 16];
    for body in [
        json!({ "prompt": [] }),
        json!({ "prompt": vec!["a"; 20_000], "n": 16, "stop": stops, "max_tokens": 1 }),
        json!({ "prompt": vec![[1, 2]; 20_000], "n": 16, "max_tokens": 1 }),
        json!({ "prompt": "a".repeat(4 * MIB - 100), "max_tokens": 1 }),
        json!({ "prompt": "a ".repeat(2 * MIB - 100), "max_tokens": 1, "n": 16 }),
        json!({ "messages": [{ "role": "user", "content": "a".repeat(4 * MIB - 100) }] }),
    ] {
        let path = if body["messages"].is_null() { "completions" } else { "chat/completions" };
        let (status, answer) = server.post(&format!("/v1/{path}"), &body);
        assert_eq!(status, 400, "{answer}");
    }
    let values = format!("{{\"messages\":[{}{{}}]}}", "{},".repeat(4 * MIB / 3 - 100));
    let (status, answer) = server.send(&hostile::post("/v1/chat/completions", &values));
    assert_eq!(status, 413, "{answer}");
    let grown = server.peak_kib() - before;
    assert!(grown < GROWTH_KIB, "{grown} KiB more");
}

/// 16-4: 24 of them at once took 5.8 GB.
#[test]
fn large_bodies_together_are_bounded_and_small_requests_pass() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let good = || server.post("/v1/completions", &continuation("Good", 4, false));
    let expected = good().1["choices"][0]["text"].clone();
    let before = server.peak_kib();
    let large = post("/v1/completions", &json!({ "prompt": "a".repeat(4 * MIB - 100) }));
    let begun = hostile::head("/v1/completions", &(4 * MIB - 1).to_string());
    // Eight large bodies that are being sent take up all the room there is.
    let mut slow: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(&begun).unwrap();
    }
    until("all are let in", || server.metric("motley_held_body_bytes") >= 8.0 * 4e6);
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..24).map(|_| scope.spawn(|| server.send(&large))).collect();
        for _ in 0..3 {
            let (status, answer) = good();
            assert_eq!((status, &answer["choices"][0]["text"]), (200, &expected), "{answer}");
        }
        for asked in asked {
            let (status, answer) = asked.join().expect("an answer");
            assert_eq!(status, 503, "{answer}");
            assert!(answer.contains("bodies_full"), "{answer}");
        }
    });
    drop(slow);
    until("their room is free", || server.metric("motley_held_body_bytes") == 0.0);
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..24).map(|_| scope.spawn(|| server.send(&large))).collect();
        let refused = asked.into_iter().map(|asked| asked.join().expect("an answer").0);
        let refused: Vec<u16> = refused.collect();
        assert!(refused.iter().all(|status| [400, 503].contains(status)), "{refused:?}");
        assert!(refused.contains(&400), "some are read and found too long: {refused:?}");
    });
    let grown = server.peak_kib() - before;
    assert!(grown < GROWTH_KIB, "{grown} KiB more");
}

/// 16-6: an empty key opened the server.
#[test]
fn a_key_that_locks_nothing_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let path = file.to_str().unwrap();
    let refused = |args: &[&str]| {
        let output = support::motley(&[&["serve", "no/such.gguf"], args].concat());
        assert!(!output.status.success(), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--api-key", ""]).contains("--api-key"), "an empty flag");
    assert!(refused(&["--api-key-file", path]).contains(path), "no such file");
    std::fs::write(&file, "\nsesame\n").unwrap();
    assert!(refused(&["--api-key-file", path]).contains("is empty"), "an empty first line");
    let both = refused(&["--api-key-file", path, "--api-key", "sesame"]);
    assert!(both.contains("cannot be used with"), "{both}");
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    std::fs::write(&file, " sesame \n").unwrap();
    let locked = Server::start(&model, &["--api-key-file", path]);
    assert_eq!(locked.get("/v1/models").0, 401);
    let with = "GET /v1/models HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\
                Authorization: Bearer sesame\r\n\r\n";
    assert_eq!(locked.send(with.as_bytes()).0, 200);
}

/// 16-7: readers that never read held their connections for ever, without a key.
#[test]
fn readers_that_stall_are_disconnected() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let args = ["--connections", "4", "--api-key", "sesame", "--write-timeout", "1"];
    let server = Server::start(&model, &args);
    let page = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2000);
    let stalled: Vec<_> = (0..4)
        .map(|_| {
            let mut stream = server.connect();
            stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
            // Fails when the server no longer reads: it waits for its answers to leave.
            let _ = stream.write_all(page.as_bytes());
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(server.get("/health").0, 200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop(stalled);
}

/// 16-8: after the file had changed every answer was 500 and `/ready` 200.
#[test]
fn readiness_follows_the_answers() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("model.gguf");
    std::fs::copy(&model, &copy).expect("room for a copy");
    let (spec, _) = motley_model::ModelSpec::open(&copy).expect("a model");
    let shape = SessionShape { chunk_tokens: 256, output_tokens: 2, ..support::SHAPE };
    let memory = Budget::of(&spec, shape).smallest_bytes().to_string();
    let args = ["--memory", &memory, "--context", "1024", "--chunk", "256", "--streams", "2"];
    let server = Server::start(&copy, &args);
    let ask = || server.post("/v1/completions", &continuation("Read", 8, false)).0;
    assert_eq!((ask(), server.get("/ready").0), (200, 200));
    assert_eq!(server.metric("motley_engine_answering"), 1.0);
    std::fs::File::options().write(true).open(&copy).unwrap().set_len(4096).unwrap();
    assert_eq!(ask(), 500);
    let (status, answer) = server.get("/ready");
    assert_eq!(status, 503, "{answer}");
    assert!(answer.contains("engine_failing") && !answer.contains("model.gguf"), "{answer}");
    assert_eq!(server.metric("motley_engine_answering"), 0.0);
    assert_eq!(server.get("/health").0, 200, "the process lives, and others may be well");
}

/// 16-12: neither said a word.
#[test]
fn text_is_logged_when_asked_for_and_origins_are_checked() {
    for origin in ["https://ok.example\u{7f}", "ok.example", "https://ok.example/path"] {
        let output = support::motley(&["serve", "no/such.gguf", "--cors", origin]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("--cors") && said.contains("not an origin"), "{said}");
    }
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = Server::start_logging(&model, &["--log-text"], log.reopen().unwrap());
    server.post("/v1/completions", &continuation("A secret prompt", 2, false));
    until("the log has it", || {
        std::fs::read_to_string(log.path()).unwrap().contains("A secret prompt")
    });
    let quiet = tempfile::NamedTempFile::new().unwrap();
    let server = Server::start_logging(&model, &["-v"], quiet.reopen().unwrap());
    server.post("/v1/completions", &continuation("A secret prompt", 2, false));
    drop(server);
    assert!(!std::fs::read_to_string(quiet.path()).unwrap().contains("A secret prompt"));
}

/// 16-13: a host that is no text passed, and so did a second one.
#[test]
fn a_host_that_is_not_plain_reaches_nothing() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let asked = |target: &str, hosts: &[&[u8]]| {
        let mut request = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n").into_bytes();
        for host in hosts {
            request.extend([b"Host: ", *host, b"\r\n"].concat());
        }
        request.extend(b"\r\n");
        server.send(&request).0
    };
    assert_eq!(asked("/v1/models", &[b"localhost"]), 200);
    assert_eq!(asked("/v1/models", &[b"evil.example"]), 403);
    assert_eq!(asked("/v1/models", &[b"\xe9vil.example"]), 400);
    assert_eq!(asked("/v1/models", &[b"localhost", b"evil.example"]), 400);
    assert_eq!(asked("/v1/models", &[]), 400);
    assert_eq!(asked("/health", &[]), 400);
    assert_eq!(asked("http://evil.example/v1/models", &[b"localhost"]), 400);
    assert_eq!(asked("http://evil.example/v1/models", &[b"evil.example"]), 403);
    assert_eq!(asked("http://localhost/v1/models", &[b"localhost"]), 200);
}

/// 16-13: `cached_tokens` told tenants about each other.
#[test]
fn without_shared_prefixes_nobody_learns_of_others() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let prompt = "The plan for the coming quarter is as follows, and nobody else may know. ";
    let cached = |args: &[&str]| {
        let server = Server::start(&model, args);
        let ask = || server.post("/v1/completions", &continuation(&prompt.repeat(4), 2, false)).1;
        ask();
        ask()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    assert!(cached(&[]) > 0);
    assert_eq!(cached(&["--no-share-prefix"]), 0);
    assert_eq!(cached(&["--no-share-prefix", "--stream-context", "512"]), 0);
}
