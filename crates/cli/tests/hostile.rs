//! Malformed and hostile requests by raw socket: the server answers each as it should,
//! goes on serving the others, and does not grow. `MOTLEY_HOSTILE` says how many.

#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use support::server::{Server, continuation, count, post};

/// Largest growth of resident memory between the middle and the end of a run.
const GROWTH: f64 = 1.05;

#[test]
fn hostile_requests_do_no_harm() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let args =
        ["--header-timeout", "1", "--max-body", "1M", "--streams", "4", "--connections", "64"];
    let server = Server::start(&model, &args);
    let total = count("MOTLEY_HOSTILE", 400);
    let good = || {
        server.post("/v1/completions", &continuation("Good", 8, false)).1["choices"][0]["text"]
            .clone()
    };
    let expected = good();
    let mut random = Random(7);
    let mut middle_kib = 0;
    for round in 0..total {
        let attack = ATTACKS[random.below(ATTACKS.len())];
        attack(&server, &mut random);
        if round == total / 2 {
            middle_kib = server.resident_kib();
        }
        if round % 100 == 99 {
            assert_eq!(good(), expected, "after {round}");
        }
    }
    assert_eq!(good(), expected);
    let end_kib = server.resident_kib();
    println!(
        "{total} hostile requests; memory {middle_kib} KiB in the middle, {end_kib} at the end"
    );
    assert!(end_kib as f64 <= middle_kib as f64 * GROWTH + 2048.0, "{middle_kib} → {end_kib} KiB");
}

#[test]
fn slow_headers_and_slow_bodies_are_ended() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &["--header-timeout", "1"]);
    let begun = Instant::now();
    let mut slow: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"POST /v1/completions HTTP/1.1\r\nHost: lo").unwrap();
    }
    assert_eq!(server.get("/health").0, 200, "others are served meanwhile");
    for stream in &mut slow {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "slow headers are cut off");
}

type Attack = fn(&Server, &mut Random);

const ATTACKS: [Attack; 9] = [
    garbage,
    bad_utf8,
    deep_json,
    huge_body,
    lying_length,
    cut_off,
    wrong_types,
    many_headers,
    hostile_schema,
];

fn garbage(server: &Server, random: &mut Random) {
    let bytes: Vec<u8> = (0..random.below(2000) + 1).map(|_| random.below(256) as u8).collect();
    let mut stream = server.connect();
    let _ = stream.write_all(&bytes);
    let _ = stream.write_all(b"\r\n\r\n");
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).unwrap_or(0);
    let said = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
}

fn bad_utf8(server: &Server, random: &mut Random) {
    let mut request = post("/v1/completions", &continuation("abcdefgh", 1, false));
    let end = request.len() - 60;
    let at = end + random.below(50);
    request[at] = 0xff;
    assert_eq!(server.send(&request).0, 400);
}

fn deep_json(server: &Server, random: &mut Random) {
    let depth = 100 + random.below(100_000);
    let deep = "[".repeat(depth);
    let body = format!("{{\"prompt\": {deep}");
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(server.send(head.as_bytes()).0, 400);
}

fn huge_body(server: &Server, _: &mut Random) {
    let body = json!({ "prompt": "x".repeat(2 << 20), "max_tokens": 1 });
    let (status, _) = server.send(&post("/v1/completions", &body));
    // The answer may be lost when the server closes before all is sent.
    assert!(status == 413 || status == 0, "{status}");
}

fn lying_length(server: &Server, random: &mut Random) {
    let length = ["18446744073709551615", "-1", "abc", "1, 2", "0x10"][random.below(5)];
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{}}"
    );
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let said = String::from_utf8_lossy(&answer);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
}

fn cut_off(server: &Server, random: &mut Random) {
    let request = post("/v1/completions", &continuation("Cut", 50, random.below(2) == 0));
    let mut stream = server.connect();
    let _ = stream.write_all(&request[..random.below(request.len()) + 1]);
}

fn wrong_types(server: &Server, random: &mut Random) {
    let odd = [
        json!(null),
        json!(-1),
        json!(1e308),
        json!("x"),
        json!([]),
        json!({}),
        json!([[[]]]),
        json!("\u{0}"),
        json!(u64::MAX),
        json!(true),
        json!({ "a": { "b": [1, 2] } }),
    ];
    let fields = [
        "prompt",
        "max_tokens",
        "temperature",
        "top_p",
        "stop",
        "n",
        "seed",
        "logprobs",
        "stream",
        "messages",
        "tools",
        "tool_choice",
        "response_format",
        "logit_bias",
        "top_k",
        "model",
        "stream_options",
        "chat_template_kwargs",
        "presence_penalty",
    ];
    let chat = random.below(2) == 0;
    let mut body = match chat {
        true => json!({ "messages": [{ "role": "user", "content": "a" }], "max_tokens": 2 }),
        false => continuation("a", 2, false),
    };
    for _ in 0..1 + random.below(3) {
        body[fields[random.below(fields.len())]] = odd[random.below(odd.len())].clone();
    }
    if body["max_tokens"].as_u64().is_none_or(|most| most > 4) {
        body["max_tokens"] = json!(2);
    }
    let path = if chat { "/v1/chat/completions" } else { "/v1/completions" };
    let (status, answer) = server.post(path, &body);
    assert!([200, 400, 404].contains(&status), "{status} {body} {answer}");
    if status != 200 {
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
}

fn many_headers(server: &Server, random: &mut Random) {
    let (count, size) = (random.below(500) + 65, random.below(100));
    let headers: String =
        (0..count).map(|at| format!("X-{at}: {}\r\n", "v".repeat(size))).collect();
    let request = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    let (status, _) = server.send(request.as_bytes());
    assert!(status == 431 || status == 0, "{status}");
}

fn hostile_schema(server: &Server, random: &mut Random) {
    let deep = (0..random.below(60)).fold(
        json!({ "type": "string" }),
        |inner: Value, _| json!({ "type": "array", "items": inner, "maxItems": 2 }),
    );
    let schemas = [
        json!({ "type": "elephant" }),
        json!({ "$ref": "#" }),
        json!({ "pattern": "^(a|a)*{99999}$", "type": "string" }),
        json!({ "type": "object", "properties": { "\u{0}\"\\": { "const": "\u{0}\"" } } }),
        json!({ "enum": [] }),
        json!({ "type": "array", "minItems": 100_000, "items": {} }),
        json!({ "properties": { "é".repeat(random.below(8000)): {} } }),
        deep,
    ];
    let body = json!({
        "messages": [{ "role": "user", "content": "a" }], "max_tokens": 2,
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "a", "schema": schemas[random.below(schemas.len())] },
        },
    });
    let (status, answer) = server.post("/v1/chat/completions", &body);
    assert!([200, 400, 500].contains(&status), "{status} {answer}");
}

/// xorshift64: the same attacks every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
