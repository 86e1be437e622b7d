//! Several models in one server: loaded when asked for, one memory over all, unloaded when idle. Each
//! says what it says alone.

#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use support::server::{Server, continuation, until};

/// Two models, under the names `a` and `b` in a folder of their own.
struct Two {
    folder: tempfile::TempDir,
}

impl Two {
    fn new() -> Option<Self> {
        let (first, second) = (support::synth(Arch::Qwen3moe)?, support::synth(Arch::Glm4moe)?);
        let folder = tempfile::tempdir().expect("a folder");
        let two = Self { folder };
        for (name, model) in [("a", first), ("b", second)] {
            std::fs::copy(model, two.path(name)).expect("a copy");
        }
        Some(two)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.gguf"))
    }

    /// What each says when it is alone.
    fn alone(&self) -> [String; 2] {
        ["a", "b"].map(|name| said(&Server::start(&self.path(name), ARGS), "m"))
    }

    fn serve(&self, args: &[&str]) -> Server {
        Server::start_several(&[self.folder.path()], &[ARGS, args].concat())
    }
}

/// What gateways choose a server by.
const GATEWAY_GAUGES: [&str; 3] =
    ["vllm:num_requests_waiting", "vllm:num_requests_running", "vllm:kv_cache_usage_perc"];
const ARGS: &[&str] = &["--exact", "--streams", "2", "--context", "512", "--trust-file"];

fn ask(model: &str) -> Value {
    let mut body = continuation("One two", 12, false);
    body["model"] = json!(model);
    body
}

fn said(server: &Server, model: &str) -> String {
    let (status, answer) = server.post("/v1/completions", &ask(model));
    assert_eq!(status, 200, "{model}: {answer}");
    assert_eq!(answer["model"], model);
    answer["choices"][0]["text"].as_str().expect("text").to_owned()
}

fn json_of(server: &Server, path: &str) -> Value {
    let (status, text) = server.get(path);
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// State of each model by name.
fn states(server: &Server) -> [(String, String); 2] {
    let room = json_of(server, "/motley/room");
    [0, 1].map(|index| {
        let text = |field: &str| room["models"][index][field].as_str().expect("text").to_owned();
        (text("name"), text("state"))
    })
}

fn are(server: &Server, first: &str, second: &str) -> bool {
    let [(a, of_a), (b, of_b)] = states(server);
    assert_eq!((a.as_str(), b.as_str()), ("a", "b"));
    (of_a.as_str(), of_b.as_str()) == (first, second)
}

#[test]
fn models_are_loaded_by_name_inside_the_sandbox_and_say_what_they_say_alone() {
    let Some(two) = Two::new() else { return };
    let alone = two.alone();
    assert_ne!(alone[0], alone[1]);
    let server = two.serve(&[]);
    assert!(are(&server, "absent", "absent"), "nobody has asked");
    assert_eq!(server.get("/motley/dashboard").0, 404);
    for (gauge, model) in GATEWAY_GAUGES.into_iter().zip(["a", "b", "b"]) {
        let gauge = format!("{gauge}{{model_name=\"{model}\"}}");
        assert_eq!(server.metric(&gauge), 0.0, "it has nothing to do, which gateways must know");
    }
    assert_eq!(said(&server, "b"), alone[1]);
    assert!(are(&server, "absent", "loaded"));
    assert_eq!(said(&server, "a"), alone[0]);
    assert!(are(&server, "loaded", "loaded"), "there is room for both");
    for model in ["a", "b"] {
        let dashboard = json_of(&server, &format!("/motley/dashboard?model={model}"));
        assert_eq!(dashboard["model"], model);
        let answered = format!("motley_requests_answered_total{{model=\"{model}\"}}");
        until("its answer is counted", || server.metric(&answered) == 1.0);
    }
    names(&server);
    let room = json_of(&server, "/motley/room");
    let needs = |index: usize| room["models"][index]["needs_bytes"][0].as_u64().expect("bytes");
    assert_eq!(room["memories"][0]["taken_bytes"].as_u64(), Some(needs(0) + needs(1)));
}

/// What the server says of its models, loaded or not.
fn names(server: &Server) {
    let ids = |list: &Value, field: &str| -> Vec<String> {
        let list = list.as_array().expect("a list").iter();
        list.map(|model| model[field].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(ids(&json_of(server, "/v1/models")["data"], "id"), ["a", "b"]);
    assert_eq!(ids(&json_of(server, "/api/tags")["models"], "name"), ["a", "b"]);
    assert_eq!(ids(&json_of(server, "/api/ps")["models"], "name"), ["a", "b"]);
    let (status, shown) = server.post("/api/show", &json!({ "model": "b:latest" }));
    assert_eq!((status, &shown["details"]["family"]), (200, &json!("glm4moe")), "{shown}");
    let (status, refused) = server.post("/v1/completions", &ask("c"));
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")));
    assert!(refused.to_string().contains("`a`, `b`"), "{refused}");
    let (status, answer) = server.post("/v1/completions", &continuation("One two", 1, false));
    assert_eq!((status, &answer["model"]), (200, &json!("a")), "the first answers who names none");
}

#[test]
fn a_request_says_how_long_its_model_stays() {
    let Some(two) = Two::new() else { return };
    let server = two.serve(&["--idle", "1h"]);
    said(&server, "a");
    let room = json_of(&server, "/motley/room");
    let left = room["models"][0]["unloaded_in_s"].as_f64().expect("a time");
    assert!((3000.0..=3600.0).contains(&left), "{left}");
    let ollama = |model: &str, keep_alive: Value| {
        let body = json!({ "model": model, "keep_alive": keep_alive });
        server.post("/api/generate", &body)
    };
    assert_eq!(ollama("b", json!("10m")).0, 200, "loads it and says nothing");
    assert!(are(&server, "loaded", "loaded"));
    assert_eq!(ollama("a", json!(0)).0, 200);
    until("the first is unloaded", || are(&server, "absent", "loaded"));
    assert_eq!(json_of(&server, "/api/ps")["models"].as_array().map(Vec::len), Some(1));
    let (status, refused) = ollama("a", json!("soon"));
    assert_eq!(status, 400, "{refused}");
    said(&server, "a");
}

#[test]
fn one_memory_holds_one_model_at_a_time_and_everybody_is_answered() {
    let Some(two) = Two::new() else { return };
    let alone = two.alone();
    let room = json_of(&two.serve(&[]), "/motley/room");
    let needs = |index: usize| room["models"][index]["needs_bytes"][0].as_u64().expect("bytes");
    let memory = (needs(0).max(needs(1)) + needs(0).min(needs(1)) / 2).to_string();
    let server = two.serve(&["--memory", &memory]);
    std::thread::scope(|scope| {
        for round in 0..6 {
            let (server, alone) = (&server, &alone);
            scope.spawn(move || {
                let which = round % 2;
                assert_eq!(said(server, ["a", "b"][which]), alone[which]);
                assert!(!are(server, "loaded", "loaded"), "both do not fit");
            });
        }
    });
    let room = json_of(&server, "/motley/room");
    let memory = &room["memories"][0];
    assert!(memory["taken_bytes"].as_u64() <= memory["bytes"].as_u64(), "{room}");
}

#[test]
fn one_model_alone_is_unloaded_when_idle_and_loaded_again() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[ARGS, &["--idle", "300ms"]].concat());
    let before = said(&server, "m");
    let loaded = || server.post("/v1/completions", &ask("m")).0 == 200;
    for _ in 0..2 {
        until("it is unloaded", || server.get("/motley/dashboard").0 == 404);
        assert!(loaded());
    }
    assert_eq!(said(&server, "m"), before);
}

/// The allocator keeps pieces of a model's size for the next one; the system gets them back.
#[test]
fn memory_of_an_unloaded_model_is_the_systems_again() {
    let Some(model) = support::upcycled(8, 2) else { return };
    let args = ["--streams", "2", "--context", "512", "--idle", "1h", "--trust-file"];
    let server = Server::start(&model, &args);
    said(&server, "m");
    let with = server.resident_kib();
    assert_eq!(server.post("/api/generate", &json!({ "keep_alive": 0 })).0, 200);
    until("it is unloaded", || server.get("/motley/dashboard").0 == 404);
    until("its memory is free", || server.resident_kib() < with / 4);
    said(&server, "m");
}

#[test]
fn a_model_that_cannot_be_loaded_is_said_and_the_other_answers() {
    let Some(two) = Two::new() else { return };
    let log = tempfile::NamedTempFile::new().expect("a file");
    let server = two.serve_logging(log.path());
    // Another model under the same name: its plan was made for the one before.
    std::fs::copy(two.path("b"), two.path("a")).expect("a copy");
    let (status, refused) = server.post("/v1/completions", &ask("a"));
    assert_eq!((status, &refused["error"]["code"]), (503, &json!("model_not_loaded")));
    let path = two.path("a");
    assert!(!refused.to_string().contains(&path.display().to_string()), "{refused}");
    let log = std::fs::read_to_string(log.path()).expect("a log");
    assert!(log.contains("another model than when the server was started"), "{log}");
    said(&server, "b");
    assert!(are(&server, "absent", "loaded"));
}

impl Two {
    fn serve_logging(&self, log: &Path) -> Server {
        let log = std::fs::File::create(log).expect("a file");
        Server::start_several_logging(&[self.folder.path()], ARGS, log)
    }
}

#[test]
fn flags_for_one_model_are_refused_for_several() {
    let Some(two) = Two::new() else { return };
    let folder = two.folder.path().display().to_string();
    for (flags, said) in [
        (&["--alias", "x"][..], "--alias names one model"),
        (&["--plan", "p"], "--plan is for one"),
    ] {
        let output = support::motley(&[&["serve", &folder, "--trust-file"], flags].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said), "{text}");
    }
    let again = two.path("a").display().to_string();
    let output = support::motley(&["serve", &folder, &again, "--trust-file"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("would both be called `a`"), "{text}");
}
