//! Schemas: each is refused by the name of what is not enforced, or every answer within it
//! satisfies it. Hostile ones cost little, before and while they are answered.

#![allow(clippy::disallowed_methods, reason = "a test may look at the clock")]

#[path = "support/enforced.rs"]
mod enforced;

use enforced::{Verdict, verdict, vocabulary};
use motley_engine::text::constraint::{Token, Vocabulary};
use motley_engine::{Constraint, ConstraintError};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Answers drawn within each schema.
const SEEDS: u64 = 12;
/// Longest a schema may take to be compiled or refused, on a machine that is busy with others.
const COMPILED_WITHIN: Duration = Duration::from_secs(5);

/// Draws answers; at least one must end by itself.
fn enforced(schema: &Value) {
    let mut satisfied = 0;
    for seed in 0..SEEDS {
        match verdict(&schema.to_string(), &seed.to_le_bytes()).expect("it is JSON") {
            Verdict::Satisfied(_) => satisfied += 1,
            Verdict::Unfinished(None) | Verdict::Unjudged(_) => {}
            other => panic!("{schema}: {other:?}"),
        }
    }
    assert!(satisfied > 0, "no answer to {schema} ended");
}

fn refused(schema: &Value, by: &str) {
    match vocabulary().constraint(schema) {
        Ok(_) => panic!("{schema} is taken"),
        Err(error) => assert!(error.to_string().contains(by), "{schema}: {error}"),
    }
}

#[test]
fn patterns_are_enforced() {
    for pattern in [
        r"^\d{4}-\d{2}$",
        r"^foo$|^bar$",
        "^[a-z]{3}$",
        r"\d",
        "^a.c$",
        r"^[^\s]+$",
        r"^\s\S$",
        r"^[[a]+$",
        "^[^\"]+$",
        r"^[^\\]{2,4}$",
        r"^[^a]\D\W$",
        r"^[^\x00-\x1f]+$",
        "^[^\n]+$",
        r"^(?:[^b]|\W)$",
        r#"^a\\b"c$"#,
        r"^a\nb$",
        r"^(ab)*?$",
        r"^\u00e9[&~-]$",
    ] {
        enforced(&json!({ "type": "string", "pattern": pattern }));
    }
    enforced(&json!({ "type": "string", "pattern": r"^[\w.-]+@[\w-]+$", "maxLength": 10 }));
    enforced(&json!({ "type": "string", "allOf": [{ "pattern": "^a" }, { "pattern": "b.?$" }] }));
}

#[test]
fn patterns_that_are_not_enforced_are_refused() {
    for pattern in [r"\bword", "(?=a)b", r"(a)\1", "(?i)a", "(", r"^a\x01b$", r"\p{L}"] {
        refused(&json!({ "type": "string", "pattern": pattern }), "");
    }
    refused(&json!({ "properties": { "x": { "pattern": r"\b" } } }), "`pattern` at #/properties/x");
}

#[test]
fn formats_are_enforced() {
    for format in [
        "date",
        "time",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uri",
        "uuid",
    ] {
        enforced(&json!({ "type": "string", "format": format }));
    }
    enforced(&json!({ "type": "string", "format": "uuid", "pattern": "^a" }));
    refused(&json!({ "type": "string", "format": "iri" }), "`format`");
    refused(&json!({ "type": "string", "format": "unknown" }), "`format`");
}

#[test]
fn keywords_are_enforced() {
    let node = json!({
        "type": "object", "required": ["v", "next"], "additionalProperties": false,
        "properties": {
            "v": { "type": "integer" },
            "next": { "anyOf": [{ "$ref": "#/$defs/n" }, { "type": "null" }] },
        },
    });
    let kind = |kind: &str| json!({ "type": "object", "properties": { "k": { "const": kind } }, "required": ["k"] });
    for schema in [
        json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 4 }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
                "items": [{ "type": "null" }, { "const": "a" }], "additionalItems": false, "minItems": 2 }),
        json!({ "items": { "type": "boolean" }, "prefixItems": [{ "type": "null" }], "type": "array" }),
        json!({ "type": "array", "prefixItems": [{ "const": 1 }], "items": false, "minItems": 1 }),
        json!({ "const": "é\n\"\\/" }),
        json!({ "const": { "a": [1, null, true, 5.5] } }),
        json!({ "enum": ["a", 1, null, [2], { "b": "c" }] }),
        json!({ "enum": ["a", 1], "type": "string" }),
        json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
        json!({ "oneOf": [kind("a"), kind("b")] }),
        json!({ "allOf": [{ "type": "integer", "minimum": 3 }, { "maximum": 7 }] }),
        json!({ "allOf": [kind("a"), { "properties": { "b": { "type": "null" } }, "required": ["b"] }] }),
        json!({ "allOf": [{ "type": "object", "properties": { "a": {} }, "additionalProperties": false },
                          { "properties": { "b": {} } }] }),
        json!({ "$ref": "#/$defs/n", "$defs": { "n": node } }),
        json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        json!({ "type": "object", "properties": { "a": { "type": "integer" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "null" } }, "additionalProperties": { "type": "string" } }),
        json!({ "type": "object", "properties": { "a\"b": { "type": "null" }, "é": {} }, "required": ["é"] }),
        json!({ "type": "object", "patternProperties": { "^x": { "type": "integer" } },
                "properties": { "xa": { "minimum": 5 } }, "required": ["xa"] }),
        json!({ "type": "object", "patternProperties": { "^[^\"]$": { "type": "null" } }, "additionalProperties": { "type": "string" } }),
        json!({ "type": "object", "minProperties": 1, "properties": { "a": {}, "b": {} }, "additionalProperties": false }),
        json!({ "type": "object", "maxProperties": 1 }),
        json!({ "type": "integer", "minimum": -3, "exclusiveMaximum": 12 }),
        json!({ "type": "number", "minimum": 0.5, "maximum": 1.25 }),
        json!({ "type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 10 }),
        json!({ "type": ["string", "null"], "maxLength": 2 }),
        json!({ "type": "string", "minLength": 3, "maxLength": 5 }),
        json!({ "$schema": "http://json-schema.org/draft-04/schema#", "const": 5 }),
        json!({ "title": "T", "default": 1, "x-guidance": { "lenient": true }, "type": "integer" }),
        json!({ "type": "object", "properties": { "not": { "type": "integer" }, "$ref": { "type": "null" } },
                "required": ["not", "$ref"], "additionalProperties": false }),
        json!({}),
    ] {
        enforced(&schema);
    }
}

#[test]
fn keywords_that_are_not_enforced_are_refused_by_name() {
    for (schema, name) in [
        (json!({ "not": { "type": "string" } }), "`not`"),
        (json!({ "if": { "type": "string" }, "then": { "minLength": 3 } }), "`if`"),
        (json!({ "type": "array", "uniqueItems": true }), "`uniqueItems`"),
        (json!({ "type": "array", "contains": {} }), "`contains`"),
        (json!({ "propertyNames": { "pattern": "^a" } }), "`propertyNames`"),
        (json!({ "dependentRequired": { "a": ["b"] } }), "`dependentRequired`"),
        (json!({ "unevaluatedProperties": false }), "`unevaluatedProperties`"),
        (json!({ "x-guidance": { "lenient": true }, "not": {} }), "`not`"),
        (json!({ "type": "object", "minProperties": 2 }), "`minProperties`"),
        (json!({ "minProperties": 2, "required": ["a", "a"] }), "`minProperties`"),
        (json!({ "const": 9_007_199_254_740_993_i64 }), "`const`"),
        (json!({ "const": "a\u{1}" }), "`const`"),
        (json!({ "properties": { "a\u{1}": {} } }), "`properties`"),
        (json!({ "$ref": "https://example.com/a" }), "`$ref`"),
        (json!({ "$ref": "#/$defs/missing" }), "`$ref`"),
        (json!({ "$ref": "#/const", "const": { "not": {} } }), "`$ref`"),
        (json!({ "properties": { "a": { "$id": "b" } } }), "`$id`"),
        (json!({ "properties": { "a": 7 } }), "#/properties/a"),
        (json!({ "oneOf": [{ "type": "number" }, { "type": "integer" }] }), "oneOf"),
        (json!({ "type": "elephant" }), "elephant"),
        (json!({ "type": "string", "enum": ["a"], "pattern": "^b$" }), "cannot be enforced"),
    ] {
        refused(&schema, name);
    }
}

/// As large as those of today's models.
fn large_vocabulary() -> (Vocabulary, usize) {
    let mut random = fastrand::Rng::with_seed(1);
    let syllables = ["ba", "ke", "ti", "on", "ing", "str", "al", "co", "de", "ou", "ch", "\u{e9}"];
    let mut word = move || -> Vec<u8> {
        let parts = (0..random.usize(1..6)).map(|_| syllables[random.usize(..syllables.len())]);
        [" "].into_iter().chain(parts).collect::<String>().into_bytes()
    };
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.extend((0..1000).map(|number| number.to_string().into_bytes()));
    tokens.resize_with(150_000, &mut word);
    let count = tokens.len();
    let token = |(at, bytes)| Token { bytes, ends: at == count - 1 };
    let vocabulary = Vocabulary::new(tokens.into_iter().enumerate().map(token));
    (vocabulary.expect("it is large, not too large"), count)
}

/// Says `[` as long as it may, as the recursive schema wants it.
fn open_brackets(mut constraint: Constraint, tokens: usize) -> Result<(), ConstraintError> {
    for _ in 0..tokens {
        let mask = constraint.mask()?;
        let bracket = i32::from(b'[');
        assert!(mask.allows(bracket) && constraint.allows(bracket)?);
        constraint.accept(bracket)?;
    }
    Ok(())
}

/// Issue 16, defect 3: stacks multiplied, and a token took seconds from the fourteenth on.
#[test]
fn a_recursive_schema_costs_little_per_token() {
    let (vocabulary, _) = large_vocabulary();
    let one = |at: u32| json!({ "type": "array", "prefixItems": [{ "$ref": "#/$defs/s" }, { "const": at }] });
    for branches in [2, 20] {
        let options: Vec<_> = (0..branches).map(one).collect();
        let schema = json!({ "$ref": "#/$defs/s", "$defs": { "s": { "anyOf": options } } });
        let constraint = vocabulary.constraint(&schema).expect("it is taken");
        let begun = Instant::now();
        // Either is fine: an end of its own, or a limit.
        let _ = open_brackets(constraint, 200);
        assert!(begun.elapsed() < Duration::from_secs(5), "{branches}: {:?}", begun.elapsed());
    }
}

#[test]
fn hostile_schemas_are_compiled_or_refused_soon() {
    let (vocabulary, count) = large_vocabulary();
    let patterns = |count: usize| -> Value {
        (0..count).map(|at| json!({ "pattern": format!("^.*a.{{{at}}}$") })).collect()
    };
    let names = |count: usize, schema: &dyn Fn(usize) -> Value| -> Map<String, Value> {
        (0..count).map(|at| (format!("n{at}"), schema(at))).collect()
    };
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "type": "array", "items": inner }));
    let tree = |name: &str| {
        let again = json!({ "$ref": format!("#/$defs/{name}") });
        json!({ "type": "object", "properties": { "l": again, "r": again } })
    };
    let chain = names(
        1500,
        &|at| json!({ "items": { "$ref": format!("#/$defs/n{}", at.saturating_sub(1)) } }),
    );
    for schema in [
        json!({ "type": "string", "pattern": "^(((a{9}){9}){9}){9}$" }),
        json!({ "type": "string", "pattern": "^(((a{99}){99}){99}){99}$" }),
        json!({ "type": "string", "pattern": "^[ab]*a[ab]{60}$" }),
        json!({ "type": "string", "pattern": "(".repeat(30_000) + &")".repeat(30_000) }),
        json!({ "type": "string", "allOf": patterns(10) }),
        json!({ "type": "string", "allOf": patterns(30) }),
        json!({ "type": "array", "minItems": 4_000_000_000_u64 }),
        json!({ "type": "string", "maxLength": 4_000_000_000_u64 }),
        json!({ "type": "string", "minLength": 1_000_000, "pattern": "^a*$" }),
        json!({ "enum": names(5000, &|_| json!(0)).keys().collect::<Vec<_>>() }),
        json!({ "const": "é".repeat(30_000) }),
        json!({ "properties": { "é".repeat(30_000): {} } }),
        json!({ "properties": names(2500, &|_| json!({ "type": "string" })) }),
        json!({ "patternProperties": names(64, &|_| json!({})) }),
        json!({ "patternProperties": names(1000, &|_| json!({})) }),
        json!({ "allOf": [{ "anyOf": patterns(300) }, { "anyOf": patterns(300) }] }),
        json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/b" }], "$defs": { "a": tree("a"), "b": tree("b") } }),
        json!({ "$ref": "#/$defs/n1499", "$defs": chain }),
        json!({ "$ref": "#" }),
        json!({ "type": "integer", "multipleOf": 997 }),
        json!({ "type": "integer", "multipleOf": 999_983 }),
        json!({ "type": "integer", "allOf": [{ "multipleOf": 499 }, { "multipleOf": 491 }] }),
        deep,
    ] {
        let words: String = schema.to_string().chars().take(80).collect();
        let begun = Instant::now();
        let constraint = vocabulary.constraint(&schema);
        assert!(begun.elapsed() < COMPILED_WITHIN, "{words}: {:?}", begun.elapsed());
        let Ok(mut constraint) = constraint else { continue };
        let begun = Instant::now();
        for _ in 0..20 {
            let Ok(mask) = constraint.mask() else { break };
            let Some(token) = (0..count as i32).find(|&token| mask.allows(token)) else { break };
            if constraint.accept(token).is_err() {
                break;
            }
        }
        assert!(begun.elapsed() < COMPILED_WITHIN, "{words}: {:?} for 20 tokens", begun.elapsed());
    }
}
