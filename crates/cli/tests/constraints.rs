//! Schemas by the real server: what is taken is enforced, and a hostile one costs its sender an
//! error, not its neighbours their time.

#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::server::{Server, continuation};

/// Longest a neighbour waits beside a hostile schema; alone it takes a tenth of a second.
const NEIGHBOUR_WITHIN: Duration = Duration::from_secs(5);
/// Resident memory that hostile schemas may add.
const GROWTH_KIB: u64 = 256 << 10;

fn asked(schema: &Value, tokens: usize, seed: u32) -> Value {
    json!({
        "messages": [{ "role": "user", "content": "hi" }],
        "max_tokens": tokens, "temperature": 1.0, "seed": seed,
        "response_format": { "type": "json_schema", "json_schema": { "name": "a", "schema": schema } },
    })
}

/// Issue 16, defect 3: before, neighbours waited for 90 seconds after the sender had left.
#[test]
fn a_recursive_schema_stalls_nobody() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &["--streams", "4"]);
    let one = |at: u32| json!({ "type": "array", "minItems": 2, "prefixItems": [{ "$ref": "#/$defs/s" }, { "const": at }] });
    let schema = json!({ "$ref": "#/$defs/s", "$defs": { "s": { "anyOf": [one(1), one(2)] } } });
    std::thread::scope(|scope| {
        let attack = scope.spawn(|| server.post("/v1/chat/completions", &asked(&schema, 40, 0)));
        for _ in 0..5 {
            let begun = Instant::now();
            let (status, answer) = server.post("/v1/completions", &continuation("Good", 4, false));
            assert_eq!(status, 200, "{answer}");
            assert!(begun.elapsed() < NEIGHBOUR_WITHIN, "{:?}", begun.elapsed());
        }
        let (status, answer) = attack.join().expect("the sender is answered");
        assert!([200, 400, 500].contains(&status), "{status} {answer}");
    });
}

/// Issue 16, defect 5: before, free prose came back with 200.
#[test]
fn a_pattern_is_enforced_or_refused() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let with = |pattern: &str| {
        json!({
            "type": "object", "required": ["x"], "additionalProperties": false,
            "properties": { "x": { "type": "string", "pattern": pattern } },
        })
    };
    let is_month = |text: &str| text.len() == 7 && text[..4].parse::<u32>().is_ok();
    let is_right = |pattern: &str, text: &str| match pattern {
        "^foo$|^bar$" => ["foo", "bar"].contains(&text),
        _ => is_month(text),
    };
    for pattern in [r"^\d{4}-\d{2}$", "^foo$|^bar$"] {
        for seed in 0..4 {
            let (status, answer) =
                server.post("/v1/chat/completions", &asked(&with(pattern), 120, seed));
            assert_eq!(status, 200, "{answer}");
            let choice = &answer["choices"][0];
            if choice["finish_reason"] == "stop" {
                let text = choice["message"]["content"].as_str().unwrap_or_default();
                let value: Value = serde_json::from_str(text).expect("JSON");
                assert!(
                    value["x"].as_str().is_some_and(|text| is_right(pattern, text)),
                    "{pattern}: {text}"
                );
            }
        }
    }
    for pattern in [r"\bword", r"(?=a)b", r"(a)\1"] {
        let (status, answer) = server.post("/v1/chat/completions", &asked(&with(pattern), 8, 0));
        assert_eq!(status, 400, "{answer}");
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains("`pattern` at #/properties/x"), "{words}");
    }
}

#[test]
fn what_is_not_enforced_is_refused_by_name() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    for (keyword, schema) in [
        ("not", json!({ "not": {} })),
        ("uniqueItems", json!({ "type": "array", "uniqueItems": true })),
        ("if", json!({ "if": {}, "then": {} })),
        ("format", json!({ "type": "string", "format": "color" })),
    ] {
        let (status, answer) = server.post("/v1/chat/completions", &asked(&schema, 8, 0));
        assert_eq!(status, 400, "{answer}");
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains(&format!("`{keyword}`")), "{words}");
    }
}

#[test]
fn hostile_schemas_cost_little_time_and_memory() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    // The first constraint arranges the vocabulary.
    server.post("/v1/chat/completions", &asked(&json!({ "type": "object" }), 4, 0));
    let before_kib = server.resident_kib();
    let words: Vec<String> = (0..5000).map(|at| format!("word {at}")).collect();
    for schema in [
        json!({ "enum": words }),
        json!({ "const": "é".repeat(30_000) }),
        json!({ "type": "array", "minItems": 4_000_000_000_u64 }),
        json!({ "type": "string", "maxLength": 4_000_000_000_u64 }),
        json!({ "type": "string", "pattern": "^(((a{99}){99}){99}){99}$" }),
        json!({ "type": "string", "pattern": "^[ab]*a[ab]{60}$" }),
        json!({ "type": "string", "pattern": "(".repeat(30_000) }),
        json!({ "$ref": "#" }),
    ] {
        let begun = Instant::now();
        let (status, answer) = server.post("/v1/chat/completions", &asked(&schema, 24, 0));
        assert!([200, 400, 500].contains(&status), "{status} {answer}");
        assert!(begun.elapsed() < NEIGHBOUR_WITHIN, "{:?}: {answer}", begun.elapsed());
    }
    let after_kib = server.resident_kib();
    assert!(after_kib < before_kib + GROWTH_KIB, "{before_kib} → {after_kib} KiB");
}
