//! A real server under load, cancellation, limits and shutdown.

#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod support;

use motley_plan::budget::{Budget, SessionShape};
use motley_testkit::hostile::Random;
use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use support::server::{Server, continuation, count, post, split, streamed, until};

const PROMPTS: [&str; 4] = [
    "1, 2, 3, 4, 5, 6,",
    "The chemical symbol for gold is",
    "Dear Sir or Madam,\n\nI am writing to",
    "The opposite of hot is",
];

#[test]
fn concurrent_greedy_answers_equal_those_of_run() {
    let Some(model) = support::upcycled(16, 4) else { return };
    let server = Server::start(&model, &["--exact", "--streams", "4", "--context", "2048"]);
    let said: Vec<String> = std::thread::scope(|scope| {
        let ask = |prompt: &'static str| {
            let server = &server;
            scope.spawn(move || server.post("/v1/completions", &continuation(prompt, 16, false)))
        };
        let asked: Vec<_> = PROMPTS.into_iter().map(ask).collect();
        asked.into_iter().map(|asked| text(asked.join().expect("an answer"))).collect()
    });
    for (prompt, said) in PROMPTS.iter().zip(&said) {
        assert_eq!(*said, run(&model, prompt), "{prompt:?}");
    }
}

#[test]
fn a_conversation_continues_where_its_cache_ends() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let system = "You answer in verse. ".repeat(20);
    let mut messages = vec![json!({ "role": "system", "content": system })];
    for turn in 0..2 {
        messages.push(json!({ "role": "user", "content": format!("Question {turn}") }));
        let body = json!({ "messages": messages, "max_tokens": 8, "temperature": 0 });
        let (status, answer) = server.post("/v1/chat/completions", &body);
        assert_eq!(status, 200, "{answer}");
        let cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        assert_eq!(cached > 80, turn > 0, "turn {turn}: {cached} tokens of {answer}");
        messages.push(answer["choices"][0]["message"].clone());
    }
}

/// A line of the client's own that changes every time stays out of the prompt.
#[test]
fn a_changing_first_line_does_not_cost_the_cache() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let mut usages = Vec::new();
    for line in ["x-anthropic-billing-header: cch=1;", "x-anthropic-billing-header: cch=22;"] {
        let system = [line, &"You answer in verse. ".repeat(20)].map(text_block);
        let messages = json!([{ "role": "user", "content": "Question" }]);
        let body = json!({ "system": system, "messages": messages, "max_tokens": 2 });
        let (status, answer) = server.post("/v1/messages", &body);
        assert_eq!(status, 200, "{answer}");
        let tokens = |name: &str| answer["usage"][name].as_u64().expect("a count");
        usages.push((tokens("input_tokens"), tokens("cache_read_input_tokens")));
    }
    let [(computed, 0), (rest, cached)] = usages[..] else { panic!("{usages:?}") };
    assert!(cached > 80 && rest + cached == computed, "{usages:?}");
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Clients that go away at random moments; those who stay get their single-stream text.
#[test]
fn cancelled_streams_leave_nothing_behind() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let (streams, cancelled) = (count("MOTLEY_STREAMS", 16), count("MOTLEY_CANCELLATIONS", 40));
    let (context, width) = ((512 * streams).to_string(), streams.to_string());
    let args = ["--exact", "--streams", &width, "--context", &context, "--queue", "1000"];
    let server = Server::start(&model, &args);
    let expected = text(server.post("/v1/completions", &continuation("Stay", 40, false)));
    std::thread::scope(|scope| {
        let server = &server;
        for lane in 0..streams {
            scope.spawn(move || {
                let mut random = Random::new(lane as u64 + 1);
                for _ in 0..cancelled.div_ceil(streams) {
                    leave(server, &mut random);
                }
            });
        }
        let stays: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    server.send(&post("/v1/completions", &continuation("Stay", 40, true)))
                })
            })
            .collect();
        for stays in stays {
            let (said, ended) = streamed(&stays.join().expect("an answer").1);
            assert!(ended);
            assert_eq!(said, expected);
        }
    });
    until("KV back to zero", || server.metric("motley_kv_cells_used") == 0.0);
    assert_eq!(server.metric("motley_requests_active"), 0.0);
    assert_eq!(server.metric("motley_requests_waiting"), 0.0);
    let left = server.metric("motley_requests_cancelled_total");
    assert!(left > 0.0, "nobody was seen to leave");
    let asked = cancelled.div_ceil(streams) * streams;
    println!("{left} of {asked} were seen to leave before their end");
}

/// Begins a stream and closes the connection at a random moment.
fn leave(server: &Server, random: &mut Random) {
    let mut stream = server.connect();
    stream.write_all(&post("/v1/completions", &continuation("Leave", 200, true))).unwrap();
    let mut some = vec![0; random.below(4000)];
    if random.below(2) == 0 {
        std::thread::sleep(Duration::from_millis(random.below(50) as u64));
    } else {
        let _ = stream.read_exact(&mut some);
    }
}

/// Experts come from disk in the least memory that works; then their file is cut short.
#[test]
fn a_disk_that_fails_ends_requests_and_not_the_server() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("model.gguf");
    std::fs::copy(&model, &copy).expect("room for a copy");
    let (spec, _) = motley_model::ModelSpec::open(&copy).expect("a model");
    let shape = SessionShape { chunk_tokens: 256, output_tokens: 2, ..support::SHAPE };
    let memory = Budget::of(&spec, shape).smallest_bytes().to_string();
    let args = ["--exact", "--memory", &memory, "--context", "1024", "--chunk", "256"];
    let server = Server::start(&copy, &[&args[..], &["--streams", "2"]].concat());
    let ask = || server.post("/v1/completions", &continuation("Read", 8, false));
    let expected = text(ask());
    assert!(server.metric("motley_expert_read_bytes_total") > 0.0);
    assert_eq!(text(ask()), expected);
    std::fs::File::options().write(true).open(&copy).unwrap().set_len(4096).unwrap();
    for _ in 0..2 {
        let (status, answer) = ask();
        assert_eq!((status, &answer["error"]["type"]), (500, &json!("server_error")), "{answer}");
        assert!(!answer.to_string().contains("model.gguf"), "paths stay inside: {answer}");
    }
    // An answer may be a moment ahead of its count.
    until("both counted", || server.metric("motley_requests_failed_total") == 2.0);
    assert_eq!(server.get("/health").0, 200);
    until("KV back to zero", || server.metric("motley_kv_cells_used") == 0.0);
}

#[test]
fn beyond_the_queue_is_429_with_a_time_to_come_back() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &["--streams", "1", "--queue", "1", "--context", "4096"]);
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut stream = server.connect();
        stream.write_all(&post("/v1/completions", &continuation("Hold", 3000, true))).unwrap();
        held.push(stream);
    }
    let mut refused = 0;
    for mut stream in held {
        let mut head = vec![0; 200];
        let read = stream.read(&mut head).unwrap();
        let head = String::from_utf8_lossy(&head[..read]).to_ascii_lowercase();
        if head.starts_with("http/1.1 429") {
            assert!(head.contains("retry-after: 1"), "{head}");
            refused += 1;
        }
    }
    assert!(refused >= 5, "{refused}");
}

#[test]
fn a_stopped_server_finishes_what_it_began() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let mut server = Server::start(&model, &[]);
    let mut stream = server.connect();
    stream.write_all(&post("/v1/completions", &continuation("Go on", 400, true))).unwrap();
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    server.terminate();
    let mut rest = first.to_vec();
    stream.read_to_end(&mut rest).unwrap();
    let (status, body) = split(&String::from_utf8_lossy(&rest));
    assert_eq!((status, streamed(&body).1), (200, true));
    let status = server.wait();
    assert!(status.success(), "{status}");
}

#[test]
fn a_server_stopped_while_it_computes_does_not_crash() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    for _ in 0..5 {
        let mut server = Server::start(&model, &["--streams", "4", "--drain-timeout", "0"]);
        let streams = [(); 4].map(|()| {
            let mut stream = server.connect();
            stream.write_all(&post("/v1/completions", &continuation("Go on", 900, true))).unwrap();
            stream.read_exact(&mut [0; 64]).unwrap();
            stream
        });
        server.stop();
        drop(streams);
    }
}

#[test]
fn keys_names_and_types_are_checked() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let open = Server::start(&model, &[]);
    let foreign = "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(open.send(foreign.as_bytes()).0, 403);
    let form = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(open.send(form.as_bytes()).0, 415);
    let preflight = "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                     Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n";
    let (status, _) = open.send(preflight.as_bytes());
    assert_eq!(status, 405, "no page elsewhere may ask");
    assert_eq!(open.get("/motley/page/mod.rs").0, 404, "no file of the page");
    let page = open.get("/");
    assert!(page.0 == 200 && page.1.contains("<title>"));
    let known =
        ["/health", "/ready", "/openapi.json", "/motley/dashboard", "/motley/settings", "/metrics"];
    for path in known {
        assert_eq!(open.get(path).0, 200, "{path}");
    }
    let locked = Server::start(&model, &["--api-key", "sesame"]);
    assert_eq!(locked.get("/v1/models").0, 401);
    assert_eq!(locked.get("/motley/dashboard").0, 401);
    assert_eq!(locked.get("/motley/settings").0, 401);
    for path in ["/health", "/", "/motley/page/app.js"] {
        assert_eq!(locked.get(path).0, 200, "{path}");
    }
    let with = "GET /v1/models HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\
                Authorization: Bearer sesame\r\n\r\n";
    assert_eq!(locked.send(with.as_bytes()).0, 200);
}

#[test]
fn a_model_answers_to_any_name_unless_told_otherwise() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let asked = |server: &Server, name: &str| {
        let body = json!({ "model": name, "prompt": "A", "max_tokens": 1 });
        server.post("/v1/completions", &body)
    };
    let open = Server::start(&model, &[]);
    let (status, answer) = asked(&open, "gpt-4o");
    assert_eq!((status, &answer["model"]), (200, &json!("m")), "{answer}");
    assert_eq!(open.get("/v1/models/gpt-4o").0, 404);
    let strict = Server::start(&model, &["--strict-model"]);
    let (status, answer) = asked(&strict, "gpt-4o");
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("model_not_found")), "{answer}");
    assert_eq!(asked(&strict, "m").0, 200);
}

#[test]
fn text_becomes_tokens_and_text_again() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let said = "Tell me \u{1f980} <|im_start|>something.";
    let tokens = |more: Value| {
        let mut body = json!({ "content": said });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = server.post("/tokenize", &body);
        assert_eq!(status, 200, "{answer}");
        answer["tokens"].as_array().expect("tokens").clone()
    };
    let plain = tokens(json!({}));
    let (status, back) = server.post("/detokenize", &json!({ "tokens": plain }));
    assert_eq!((status, &back["content"]), (200, &json!(said)));
    let unparsed = tokens(json!({ "parse_special": false }));
    assert!(unparsed.len() > plain.len(), "{unparsed:?} and {plain:?}");
    let pieces = tokens(json!({ "with_pieces": true }));
    assert!(pieces.iter().any(|token| token["piece"] == "<|im_start|>"), "{pieces:?}");
    assert_eq!(pieces.len(), plain.len());
    for (path, wrong) in [
        ("/detokenize", json!({ "tokens": [-1] })),
        ("/detokenize", json!({ "tokens": [i32::MAX] })),
        ("/detokenize", json!({ "tokens": vec![0; 65_537] })),
        ("/tokenize", json!({ "content": "x".repeat(2 << 20) })),
    ] {
        assert_eq!(server.post(path, &wrong).0, 400, "{path}");
    }
}

fn text((status, answer): (u16, Value)) -> String {
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0]["text"].as_str().expect("text").to_owned()
}

/// What `motley run` says.
fn run(model: &Path, prompt: &str) -> String {
    let model = model.to_str().expect("a plain path");
    let args =
        support::continued(model, prompt, &["-n", "16", "--exact", "--json", "--threads", "1"]);
    let output = support::motley(&args);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["text"].as_str().expect("text").to_owned()
}
