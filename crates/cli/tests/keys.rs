//! Keys of several teams: who has none gets nothing, who has one gets what it is given.

#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::server::{Server, continuation, split, until};

const KEYS: &str = "
[[key]]
name = 'chat'
key = 'chat-key'
weight = 3
priority = 'high'

[[key]]
name = 'ci'
key = 'ci-key'
streams = 1
deadline = '20s'
";

/// A server with both keys.
fn server(args: &[&str]) -> Option<(Server, tempfile::TempDir)> {
    let model = support::synth(Arch::Qwen3moe)?;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.toml");
    std::fs::write(&path, KEYS).expect("a file");
    let path = path.display().to_string();
    let keys = ["--api-keys", &path, "--context", "4096", "--streams", "4"];
    Some((Server::start(&model, &[&keys, args].concat()), folder))
}

fn post(server: &Server, key: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, text) = server.send(head.as_bytes());
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn metrics(server: &Server) -> String {
    let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                X-Api-Key: ci-key\r\n\r\n";
    server.send(head.as_bytes()).1
}

fn figure(server: &Server, name: &str) -> Option<f64> {
    let text = metrics(server);
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line?.trim().parse().ok()
}

#[test]
fn each_key_opens_and_no_other() {
    let Some((server, _folder)) = server(&[]) else { return };
    let body = continuation("One two", 2, false);
    for (key, status) in [("chat-key", 200), ("ci-key", 200), ("other", 401), ("", 401)] {
        assert_eq!(post(&server, key, &body).0, status, "{key}");
    }
    assert_eq!(server.get("/v1/models").0, 401);
    assert_eq!(split(&metrics(&server)).0, 0, "the text, not a refusal");
}

/// Three requests of a key that may have one answered at a time, and one of a key that may have more.
#[test]
fn a_key_has_no_more_answers_at_once_than_it_is_given() {
    let Some((server, _folder)) = server(&[]) else { return };
    std::thread::scope(|scope| {
        for number in 0..3 {
            let server = &server;
            let prompt = format!("Count on from {number}:");
            scope.spawn(move || {
                let (status, answer) = post(server, "ci-key", &continuation(&prompt, 300, false));
                assert_eq!(status, 200, "{answer}");
            });
        }
        until("one is answered and two wait", || {
            figure(&server, "motley_requests_active") == Some(1.0)
                && figure(&server, "motley_requests_waiting") == Some(2.0)
        });
        let begun = Instant::now();
        let (status, answer) = post(&server, "chat-key", &continuation("Hello", 4, false));
        assert_eq!(status, 200, "{answer}");
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not wait for the others");
    });
}

#[test]
fn a_deadline_ends_an_answer_or_a_wait() {
    let Some((server, _folder)) = server(&[]) else { return };
    let mut body = continuation("Once upon a time", 4000, false);
    body["deadline_ms"] = json!(1500);
    let begun = Instant::now();
    let (status, answer) = post(&server, "chat-key", &body);
    let took = begun.elapsed();
    let tokens = answer["usage"]["completion_tokens"].as_u64().expect("a count");
    assert!(status == 200 && (1..4000).contains(&tokens), "{status}: {answer}");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert!((Duration::from_millis(1400)..Duration::from_secs(8)).contains(&took), "{took:?}");
    until("it is counted", || figure(&server, "motley_requests_late_total") == Some(1.0));
    std::thread::scope(|scope| {
        let long = continuation("Twice upon a time", 2000, false);
        let server = &server;
        scope.spawn(move || post(server, "ci-key", &long));
        until("it is answered", || figure(server, "motley_requests_active") == Some(1.0));
        // The key may have one at a time, and this one does not wait for long.
        let mut hurried = continuation("Never", 4, false);
        hurried["deadline_ms"] = json!(200);
        let (status, refused) = post(server, "ci-key", &hurried);
        assert_eq!((status, &refused["error"]["code"]), (504, &json!("deadline_exceeded")));
    });
    until("both are counted", || figure(&server, "motley_requests_late_total") >= Some(2.0));
}

#[test]
fn a_file_that_cannot_be_meant_is_refused_with_its_name() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.toml");
    std::fs::write(&path, "[[key]]\nname = 'a'\nkey = 'x'\nwieght = 2\n").expect("a file");
    let (model, path) = (model.display().to_string(), path.display().to_string());
    let output = support::motley(&["serve", &model, "--api-keys", &path]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&path) && said.contains("wieght"), "{said}");
}
