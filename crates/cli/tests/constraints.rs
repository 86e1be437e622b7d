//! Schemas, grammars and regular expressions by the real server: what is taken is enforced, and a
//! hostile one costs its sender an error, not its neighbours their time.

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
    for regex in ["(((a{999}){999}){999}){999}", "[ab]*a[ab]{60}", "((a*)*b?)*c"] {
        let begun = Instant::now();
        let (status, answer) = server.post("/v1/chat/completions", &formed("regex", &json!(regex)));
        assert!([200, 400, 500].contains(&status), "{status} {answer}");
        assert!(begun.elapsed() < NEIGHBOUR_WITHIN, "{:?}: {answer}", begun.elapsed());
    }
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

/// Requests that differ in one field beside the conversation.
fn formed(field: &str, form: &Value) -> Value {
    let mut request = json!({
        "messages": [{ "role": "user", "content": "hi" }], "max_tokens": 60, "temperature": 1.0,
    });
    request[field] = form.clone();
    request
}

#[test]
fn texts_that_are_no_json_are_enforced() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let gbnf = "root ::= greeting \", \" name{2} \".\"\ngreeting ::= \"hi\" | \"hello\"\nname ::= [a-c] | \"\\u00e9\"";
    let lark = "start: GREETING \", \" /[a-cé]{2}/ \".\"\nGREETING: \"hi\" | \"hello\"";
    let is_greeting = |text: &str| {
        let names = text.strip_prefix("hi, ").or_else(|| text.strip_prefix("hello, "));
        let names = names.and_then(|names| names.strip_suffix('.')).unwrap_or_default();
        names.chars().count() == 2 && names.chars().all(|c| "abcé".contains(c))
    };
    let is_choice = |text: &str| ["red \"one\"", "green"].contains(&text);
    let choice = json!(["red \"one\"", "green"]);
    let pattern = r"^(hi|hello), [a-cé]{2}\.$";
    for (field, form, is_right) in [
        ("grammar", json!(gbnf), &is_greeting as &dyn Fn(&str) -> bool),
        ("grammar", json!(lark), &is_greeting),
        ("regex", json!(pattern), &is_greeting),
        ("guided_regex", json!(pattern), &is_greeting),
        ("guided_choice", choice.clone(), &is_choice),
        ("structured_outputs", json!({ "choice": choice }), &is_choice),
        ("structured_outputs", json!({ "grammar": gbnf }), &is_greeting),
        ("structured_outputs", json!({ "json": { "const": "green" } }), &|text| {
            text == "\"green\""
        }),
    ] {
        for seed in 0..3 {
            let mut request = formed(field, &form);
            request["seed"] = json!(seed);
            let (status, answer) = server.post("/v1/chat/completions", &request);
            assert_eq!(status, 200, "{field}: {answer}");
            let choice = &answer["choices"][0];
            let text = choice["message"]["content"].as_str().unwrap_or_default();
            assert_eq!(choice["finish_reason"], "stop", "{field}: {text}");
            assert!(is_right(text), "{field}: {text}");
        }
    }
    let continued = json!({ "prompt": "Say:", "regex": "[ab]{3}", "max_tokens": 20 });
    let (status, answer) = server.post("/v1/completions", &continued);
    assert_eq!(status, 200, "{answer}");
    let text = answer["choices"][0]["text"].as_str().unwrap_or_default();
    assert!(text.len() == 3 && text.bytes().all(|byte| b"ab".contains(&byte)), "{text}");
}

#[test]
fn forms_that_cannot_be_enforced_are_refused_by_name() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let refused = |request: &Value, param: &str| {
        let (status, answer) = server.post("/v1/chat/completions", request);
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains(&format!("`{param}`")), "{words}");
    };
    for (field, form) in [
        ("grammar", json!("root ::= missing")),
        ("grammar", json!("start: %json {}")),
        ("grammar", json!("start: (")),
        ("grammar", json!("start: <|im_end|>")),
        ("grammar", json!(format!("root ::= \"{}\"", "a".repeat(70 << 10)))),
        ("grammar", json!("root ::= \"a\"{4000000000}")),
        ("regex", json!("(?=a)b")),
        ("regex", json!("(")),
        ("regex", json!("a".repeat(9 << 10))),
        ("regex", json!(r"\bword")),
        ("guided_choice", json!([])),
        ("structured_outputs", json!({})),
        ("structured_outputs", json!({ "regex": "a", "choice": ["b"] })),
    ] {
        let begun = Instant::now();
        refused(&formed(field, &form), field);
        assert!(begun.elapsed() < NEIGHBOUR_WITHIN, "{field}: {:?}", begun.elapsed());
    }
    let mut both = formed("regex", &json!("a"));
    both["response_format"] = json!({ "type": "json_object" });
    refused(&both, "regex");
    let mut two = formed("regex", &json!("a"));
    two["grammar"] = json!("root ::= \"a\"");
    refused(&two, "regex");
}
