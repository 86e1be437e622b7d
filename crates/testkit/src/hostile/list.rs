//! The attacks. Each takes its details from a seed; none needs an answer from another.

use super::attack::{Attack, Then, head, post};
use super::random::Random;
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
/// What a busy server may say to anything well-formed.
const BUSY: [u16; 2] = [429, 503];

/// How much an attack asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strength {
    /// Tokens under a recursive schema: each multiplies the ways a naive grammar goes on.
    pub schema_tokens: usize,
    /// Characters of one class in a row.
    pub run_chars: usize,
    /// Bytes of a large body.
    pub body_bytes: usize,
}

impl Strength {
    /// For a test of seconds.
    pub const SHORT: Self = Self { schema_tokens: 6, run_chars: 4_000, body_bytes: 1 << 20 };
    /// For a run of its own.
    pub const FULL: Self = Self { schema_tokens: 40, run_chars: 100_000, body_bytes: 4 << 20 };
}

type Make = fn(&mut Random, Strength) -> Attack;

const ALL: [(&str, Make); 16] = [
    ("garbage", garbage),
    ("bad utf-8", bad_utf8),
    ("deep json", deep_json),
    ("huge body", huge_body),
    ("lying length", lying_length),
    ("cut off", cut_off),
    ("wrong types", wrong_types),
    ("many headers", many_headers),
    ("odd schema", odd_schema),
    ("recursive schema", recursive_schema),
    ("one class run", one_class),
    ("many prompts", many_prompts),
    ("many values", many_values),
    ("long prompt", long_prompt),
    ("stalled reader", stalled_reader),
    ("odd host", odd_host),
];

/// Names of all attacks.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// One of the attacks, at random, that `wanted` by name.
pub fn attack(random: &mut Random, strength: Strength, wanted: impl Fn(&str) -> bool) -> Attack {
    let wanted: Vec<_> = ALL.iter().filter(|(name, _)| wanted(name)).collect();
    let (name, make) = **random.pick(&wanted);
    Attack { name, ..make(random, strength) }
}

/// A prompt that is one long run of one class of characters: what the patterns of
/// pre-tokenizers repeat over.
pub fn one_class_run(random: &mut Random, chars: usize) -> Attack {
    const CLASSES: [&str; 12] =
        ["a", "A", "7", " ", "\n", "\t ", "!", "é", "漢", "\u{301}", "😀", "'s"];
    let run = random.pick(&CLASSES).repeat(chars);
    let body = json!({ "prompt": run, "max_tokens": 1, "temperature": 0 });
    let attack = well_formed(COMPLETIONS, &body, &[200, 400, BUSY[0], BUSY[1]]);
    Attack { name: "one class run", ..attack }
}

fn well_formed(path: &str, body: &Value, statuses: &'static [u16]) -> Attack {
    raw(post(path, &body.to_string()), statuses)
}

fn raw(bytes: Vec<u8>, statuses: &'static [u16]) -> Attack {
    Attack { name: "", bytes, then: Then::Read, statuses, may_close: false }
}

fn continuation(prompt: &str, tokens: usize, stream: bool) -> String {
    let body = json!({
        "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": true,
        "stream": stream,
    });
    body.to_string()
}

fn garbage(random: &mut Random, _: Strength) -> Attack {
    let mut bytes: Vec<u8> = (0..random.below(2000) + 1).map(|_| random.below(256) as u8).collect();
    bytes.extend(b"\r\n\r\n");
    Attack { then: Then::EndAndRead, may_close: true, ..raw(bytes, &[400, 414, 431]) }
}

fn bad_utf8(random: &mut Random, _: Strength) -> Attack {
    let mut bytes = post(COMPLETIONS, &continuation("abcdefgh", 1, false));
    let at = bytes.len() - 60 + random.below(50);
    bytes[at] = 0xff;
    raw(bytes, &[400, BUSY[0], BUSY[1]])
}

fn deep_json(random: &mut Random, _: Strength) -> Attack {
    let deep = "[".repeat(100 + random.below(100_000));
    raw(post(COMPLETIONS, &format!("{{\"prompt\": {deep}")), &[400, 413, BUSY[0], BUSY[1]])
}

fn huge_body(_: &mut Random, strength: Strength) -> Attack {
    let body = json!({ "prompt": "x".repeat(2 * strength.body_bytes), "max_tokens": 1 });
    // The answer may be lost when the server closes before all is sent.
    Attack { may_close: true, ..well_formed(COMPLETIONS, &body, &[413]) }
}

fn lying_length(random: &mut Random, _: Strength) -> Attack {
    let length = *random.pick(&["18446744073709551615", "-1", "abc", "1, 2", "0x10"]);
    let bytes = [head(COMPLETIONS, length), b"{}".to_vec()].concat();
    // hyper calls a length beyond all numbers a header that is too large.
    Attack { then: Then::EndAndRead, may_close: true, ..raw(bytes, &[400, 413, 431]) }
}

fn cut_off(random: &mut Random, _: Strength) -> Attack {
    let mut bytes = post(COMPLETIONS, &continuation("Cut", 50, random.below(2) == 0));
    bytes.truncate(random.below(bytes.len()) + 1);
    Attack { then: Then::Leave, ..raw(bytes, &[]) }
}

fn wrong_types(random: &mut Random, _: Strength) -> Attack {
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
    const FIELDS: &str = "prompt max_tokens temperature top_p stop n seed logprobs stream messages \
        tools tool_choice response_format logit_bias top_k model stream_options \
        chat_template_kwargs presence_penalty";
    let fields: Vec<&str> = FIELDS.split_whitespace().collect();
    let chat = random.below(2) == 0;
    let mut body = match chat {
        true => json!({ "messages": [{ "role": "user", "content": "a" }], "max_tokens": 2 }),
        false => json!({ "prompt": "a", "max_tokens": 2, "temperature": 0 }),
    };
    for _ in 0..1 + random.below(3) {
        body[*random.pick(&fields)] = random.pick(&odd).clone();
    }
    if body["max_tokens"].as_u64().is_none_or(|most| most > 4) {
        body["max_tokens"] = json!(2);
    }
    let path = if chat { CHAT } else { COMPLETIONS };
    well_formed(path, &body, &[200, 400, 404, BUSY[0], BUSY[1]])
}

fn many_headers(random: &mut Random, _: Strength) -> Attack {
    let (count, size) = (random.below(500) + 65, random.below(100));
    let headers: String =
        (0..count).map(|at| format!("X-{at}: {}\r\n", "v".repeat(size))).collect();
    let bytes = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").into_bytes();
    Attack { may_close: true, ..raw(bytes, &[431]) }
}

fn odd_schema(random: &mut Random, _: Strength) -> Attack {
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
    with_schema(random.pick(&schemas), 2)
}

/// A list that begins with itself, in two ways: after each token of the common beginning there
/// are twice as many ways to go on.
fn recursive_schema(_: &mut Random, strength: Strength) -> Attack {
    let way = |last: u8| json!({ "type": "array", "prefixItems": [{ "$ref": "#/$defs/s" }, { "const": last }] });
    let schema = json!({ "$ref": "#/$defs/s", "$defs": { "s": { "anyOf": [way(1), way(2)] } } });
    with_schema(&schema, strength.schema_tokens)
}

fn with_schema(schema: &Value, tokens: usize) -> Attack {
    let body = json!({
        "messages": [{ "role": "user", "content": "a" }], "max_tokens": tokens,
        "response_format": {
            "type": "json_schema", "json_schema": { "name": "a", "schema": schema },
        },
    });
    well_formed(CHAT, &body, &[200, 400, 500, BUSY[0], BUSY[1]])
}

fn one_class(random: &mut Random, strength: Strength) -> Attack {
    let chars = 1 + random.below(strength.run_chars);
    one_class_run(random, chars)
}

fn many_prompts(random: &mut Random, _: Strength) -> Attack {
    let prompts = vec!["a"; 17 + random.below(20_000)];
    let stops = vec!["z".repeat(256); 16];
    let body = json!({ "prompt": prompts, "n": 16, "stop": stops, "max_tokens": 1 });
    well_formed(COMPLETIONS, &body, &[400, BUSY[0], BUSY[1]])
}

fn many_values(random: &mut Random, strength: Strength) -> Attack {
    let (open, each, close) =
        *random.pick(&[("{\"prompt\":[", "[],", "[]]}"), ("{\"messages\":[", "{},", "{}]}")]);
    let count = random.below(strength.body_bytes / each.len() - 32);
    let body = format!("{open}{}{close}", each.repeat(count));
    raw(post(COMPLETIONS, &body), &[400, 413, BUSY[0], BUSY[1]])
}

fn long_prompt(random: &mut Random, strength: Strength) -> Attack {
    let prompt = "a ".repeat(random.below(strength.body_bytes / 2 - 64));
    let body = json!({ "prompt": prompt, "max_tokens": 1, "n": 16 });
    well_formed(COMPLETIONS, &body, &[200, 400, BUSY[0], BUSY[1]])
}

fn stalled_reader(_: &mut Random, _: Strength) -> Attack {
    let bytes = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(400);
    Attack { then: Then::Stall, ..raw(bytes, &[]) }
}

fn odd_host(random: &mut Random, _: Strength) -> Attack {
    const HOSTS: [&[u8]; 6] = [
        b"Host: \xe9vil.example\r\n",
        b"Host: localhost\r\nHost: evil.example\r\n",
        b"",
        b"Host:\r\n",
        b"Host: localhost:80@evil.example\r\n",
        b"Host: evil.example\r\n",
    ];
    let host = *random.pick(&HOSTS);
    let bytes = [b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n", host, b"\r\n"].concat();
    raw(bytes, &[400, 403])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_attacks_again_and_every_kind_comes() {
        let drawn = |seed| {
            let mut random = Random::new(seed);
            let all = (0..300).map(move |_| attack(&mut random, Strength::SHORT, |_| true));
            all.map(|attack| (attack.name, attack.bytes.len())).collect::<Vec<_>>()
        };
        assert_eq!(drawn(7), drawn(7));
        let first = drawn(7);
        assert!(names().all(|name| first.iter().any(|(drawn, _)| *drawn == name)));
    }
}
