//! Traces of requests as a collector gets them, decoded with the protocol's own package; and a
//! collector that is not there, which nobody notices who asks.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]
#![cfg(feature = "otel")]

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::motley;
use support::server::{Server, continuation, post, streamed};

/// The example of the W3C's recommendation.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
/// `SPAN_KIND_SERVER` of the protocol.
const SERVER: u64 = 2;

/// Keeps every body it is sent as a file.
fn collector(folder: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        let bodies = (0..).map(|number| folder.join(format!("{number}.otlp")));
        for (stream, body) in listener.incoming().zip(bodies) {
            keep(stream.expect("a connection"), &body);
        }
    });
    url
}

/// One request per connection.
fn keep(mut stream: TcpStream, body: &Path) {
    let mut reader = BufReader::new(stream.try_clone().expect("a connection"));
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).expect("a request");
    assert_eq!(first.trim_end(), "POST /v1/traces HTTP/1.1");
    for line in reader.by_ref().lines().map(|line| line.expect("a header")) {
        match line.to_ascii_lowercase().split_once(':') {
            Some(("content-length", bytes)) => length = bytes.trim().parse().expect("a number"),
            Some(_) => {}
            None => break,
        }
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes).expect("a body");
    std::fs::write(body, bytes).expect("written");
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(answer.as_bytes()).expect("sent");
}

/// The spans in all bodies, in the order they began.
fn spans(python: &Path, folder: &Path) -> Vec<Value> {
    let bodies = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otlp_spans.py");
    let output = Command::new(python).arg(script).args(bodies).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut spans: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    spans.sort_by_key(|span| span["begin"].as_u64());
    spans
}

fn python() -> Option<PathBuf> {
    let packages = ["opentelemetry-proto==1.45.2"];
    support::python("otlp-venv", &packages, "opentelemetry.proto.trace.v1.trace_pb2")
}

/// The least memory with which experts come from the disk.
fn least(model: &Path) -> String {
    let (spec, _) = motley_model::ModelSpec::open(model).expect("a model");
    let shape = motley_plan::budget::SessionShape { output_tokens: 2, ..support::SHAPE };
    motley_plan::budget::Budget::of(&spec, shape).smallest_bytes().to_string()
}

/// A request as part of the trace that `parent` names.
fn within(parent: &str, path: &str, body: &Value) -> Vec<u8> {
    let request = String::from_utf8(post(path, body)).expect("text");
    request.replacen("\r\n", &format!("\r\ntraceparent: {parent}\r\n"), 1).into_bytes()
}

/// A span, its children and theirs.
fn family<'a>(spans: &'a [Value], root: &'a Value) -> Vec<&'a Value> {
    let below = |parents: &[&Value]| -> Vec<&'a Value> {
        let is_below = |span: &&Value| parents.iter().any(|parent| span["parent"] == parent["id"]);
        spans.iter().filter(is_below).collect()
    };
    let children = below(&[root]);
    let grandchildren = below(&children);
    [vec![root], children, grandchildren].concat()
}

fn text<'a>(span: &'a Value, key: &str) -> &'a str {
    span[key].as_str().expect("text")
}

#[test]
fn a_request_is_followed_through_its_stages() {
    let (Some(model), Some(python)) = (support::synth(Arch::Qwen3moe), python()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let url = collector(folder.path());
    let memory = least(&model);
    let sandbox = match motley_engine::sandbox::offered().landlock_abi {
        Some(_) => "require",
        None => "auto",
    };
    let flags = ["--otlp", &url, "--sandbox", sandbox, "--exact", "--memory", &memory];
    let shape = ["--context", "1024", "--chunk", "512", "--streams", "2"];
    let mut server = Server::start(&model, &[&flags[..], &shape].concat());

    let chat = json!({
        "model": "any name", "messages": [{"role": "user", "content": "secret words"}],
        "max_tokens": 12, "temperature": 0, "ignore_eos": true,
    });
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let (status, answer) = server.send(&within(&parent, "/v1/chat/completions", &chat));
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(status, 200, "{answer}");
    // Wrong headers and wrong requests are no reason for anything but their own answers.
    let stream = continuation("One two", 6, true);
    let (status, said) = server.send(&within("00-zz-..", "/v1/completions", &stream));
    assert!(status == 200 && streamed(&said).1, "{said}");
    let wrong = json!({"messages": [], "max_tokens": 3});
    assert_eq!(server.post("/v1/messages", &wrong).0, 400);
    leave(&server);
    server.stop();

    let spans = spans(&python, folder.path());
    followed(&spans, &answer["usage"]);
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let completions = named("text_completion m");
    let [whole, left] = completions[..] else { panic!("{completions:?}") };
    assert!(whole["parent"] == "" && whole["trace"] != TRACE && whole["failed"] == false);
    assert_eq!(whole["attributes"]["gen_ai.usage.output_tokens"], 6);
    assert_eq!(left["failed"], true);
    assert_eq!(left["attributes"]["error.type"], "cancelled");
    let refused = named("chat m").into_iter().find(|span| span["trace"] != TRACE).expect("a span");
    assert_eq!(refused["failed"], true);
    assert_eq!(refused["attributes"]["error.type"], "invalid_request_error");
    let all = serde_json::to_string(&spans).expect("JSON");
    let said = answer["choices"][0]["message"]["content"].as_str().expect("text");
    assert!(!all.contains("secret words") && !all.contains("One two"), "{all}");
    assert!(said.is_empty() || !all.contains(said), "{all}");
}

/// A client that goes away in the middle of its answer.
fn leave(server: &Server) {
    let mut stream = server.connect();
    stream.write_all(&post("/v1/completions", &continuation("Go", 900, true))).expect("sent");
    let mut some = [0; 512];
    assert!(stream.read(&mut some).expect("the beginning") > 0);
    drop(stream);
    support::server::until("its end", || server.metric("motley_requests_active") == 0.0);
}

/// What was sent of the one request with a parent.
fn followed(spans: &[Value], usage: &Value) {
    let root = spans.iter().find(|span| span["parent"] == PARENT).expect("the parent's child");
    assert_eq!((text(root, "name"), text(root, "trace")), ("chat m", TRACE));
    assert_eq!((&root["kind"], &root["failed"]), (&json!(SERVER), &json!(false)));
    let said = &root["attributes"];
    for (key, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("motley")),
        ("gen_ai.request.model", json!("any name")),
        ("gen_ai.response.model", json!("m")),
        ("gen_ai.response.finish_reasons", json!(["length"])),
        ("gen_ai.usage.input_tokens", usage["prompt_tokens"].clone()),
        ("gen_ai.usage.output_tokens", usage["completion_tokens"].clone()),
    ] {
        assert_eq!(said[key], value, "{key}");
    }
    assert_eq!(root["resource"]["service.name"], "motley");
    let family = family(spans, root);
    let mut names: Vec<_> = family[1..].iter().map(|span| text(span, "name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["decode", "disk", "disk", "prefill", "prepare", "queue"]);
    let time = |span: &Value| {
        let (begin, end) = (span["begin"].as_u64().unwrap(), span["end"].as_u64().unwrap());
        assert!(begin <= end, "{span}");
        (begin, end)
    };
    for span in &family[1..] {
        let parent = family.iter().find(|parent| parent["id"] == span["parent"]).expect("known");
        let ((begin, end), (first, last)) = (time(span), time(parent));
        assert!(first <= begin && end <= last, "{span}: {parent}");
    }
    let stage = |name| time(family.iter().find(|span| span["name"] == name).expect("a stage"));
    let stages = ["prepare", "queue", "prefill", "decode"].map(stage);
    assert!(stages.is_sorted_by_key(|(begin, _)| *begin), "{stages:?}");
    assert!(stages.windows(2).all(|two| two[0].1 == two[1].0), "no gap: {stages:?}");
    for span in &family {
        println!("{:8} {:>9} us", text(span, "name"), (time(span).1 - time(span).0) / 1000);
    }
}

#[test]
fn without_its_collector_a_server_answers_all_the_same() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let log = tempfile::NamedTempFile::new().expect("a file");
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("bound"))
    };
    let flags = ["--otlp", &closed, "--context", "1024"];
    let written = log.reopen().expect("a file");
    let mut server = Server::start_logging(&model, &flags, written);
    let begun = Instant::now();
    for _ in 0..20 {
        let (status, answer) = server.post("/v1/completions", &continuation("One", 2, false));
        assert_eq!(status, 200, "{answer}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let said = std::fs::read_to_string(log.path()).expect("a log");
    assert!(said.contains("100 of 100 spans of traces did not reach the collector"), "{said}");
}

#[test]
fn an_address_that_is_none_is_refused_before_anything_is_loaded() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let model = model.to_str().expect("a path");
    for wrong in ["127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://user:word@host"] {
        let output = motley(&["serve", model, "--otlp", wrong]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("--otlp"), "{said}");
        assert!(said.contains("is no URL"), "{said}");
    }
}
