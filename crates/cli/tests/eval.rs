//! `motley eval` as typed: the trained small model's stated perplexity, questions with
//! examples, two settings on the same items.

mod support;

use serde_json::Value;
use support::motley;

/// First 16 windows of `val.txt`, f16 file, llama.cpp with an f32 KV cache (model card).
const STATED_PERPLEXITY: f64 = 47.9813;

fn json(args: &[&str]) -> Value {
    let output = motley(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn the_stated_perplexity_of_the_trained_model() {
    let (Some(model), Some(text)) = (
        support::shared("tiny-wiki-moe/tiny-wiki-moe-f16.gguf"),
        support::shared("tiny-wiki-moe/val.txt"),
    ) else {
        return;
    };
    let (model, text) = (model.to_str().unwrap(), text.to_str().unwrap());
    let common = ["eval", model, "--text", text, "--items", "16", "--threads", "1", "--json"];
    let report = json(&[&common[..], &["--compare", "exact,loading=on-demand"]].concat());
    let found = &report["runs"][0]["subjects"][0]["text"];
    assert_eq!(found["tokens"], 16 * 512);
    let perplexity = number(&found["perplexity"]["value"]);
    // The KV cache is f16 here.
    assert!((perplexity - STATED_PERPLEXITY).abs() < 0.05, "{perplexity}");
    assert!(number(&found["perplexity"]["low"]) < perplexity);
    let ratio = &report["differences"][0]["text"]["perplexity_ratio"];
    assert!((number(&ratio["value"]) - 1.0).abs() < 1e-3, "{ratio}");
}

#[test]
fn questions_are_the_same_under_two_settings() {
    let (Some(model), Some(boolq), Some(hellaswag)) = (
        support::shared("tiny-wiki-moe/tiny-wiki-moe-f16.gguf"),
        support::shared("corpora/boolq/validation.jsonl"),
        support::shared("corpora/hellaswag/validation-1000.jsonl"),
    ) else {
        return;
    };
    let report = json(&[
        "eval",
        model.to_str().unwrap(),
        "--boolq",
        boolq.to_str().unwrap(),
        "--hellaswag",
        hellaswag.to_str().unwrap(),
        "--items",
        "6",
        "--shots",
        "1",
        "--threads",
        "1",
        "--json",
        "--compare",
        "exact",
        "--compare",
        "chunk=64",
    ]);
    let against = report["differences"].as_array().unwrap().iter();
    let settings: Vec<_> = against.map(|difference| difference["setting"].clone()).collect();
    assert_eq!(settings, ["exact", "exact", "chunk=64", "chunk=64"]);
    for run in report["runs"].as_array().unwrap() {
        for (subject, choices) in run["subjects"].as_array().unwrap().iter().zip([2, 4]) {
            let answers = &subject["questions"]["answers"];
            assert_eq!(answers["left_out"], 0);
            for question in answers["questions"].as_array().unwrap() {
                let likelihoods = question["log_likelihood"].as_array().unwrap();
                assert_eq!(likelihoods.len(), choices);
                assert!(likelihoods.iter().all(|sum| number(sum) < 0.0), "{likelihoods:?}");
            }
        }
    }
    let both = &report["runs"];
    let likelihood = |run: usize| &both[run]["subjects"][1]["questions"]["answers"]["questions"][3];
    let (first, second) = (likelihood(0), likelihood(1));
    let (first, second) = (&first["log_likelihood"][0], &second["log_likelihood"][0]);
    assert!((number(first) - number(second)).abs() < 0.1, "{first} and {second}: other items");
    let counts = &report["differences"][0]["questions"]["counts"];
    let cells = ["both", "first_only", "second_only", "neither"];
    assert_eq!(cells.iter().map(|cell| counts[cell].as_u64().unwrap()).sum::<u64>(), 6);
}

#[test]
fn what_cannot_be_says_what_helps() {
    let Some(model) = support::shared("tiny-wiki-moe/tiny-wiki-moe-f16.gguf") else { return };
    let Some(text) = support::shared("tiny-wiki-moe/val.txt") else { return };
    let (model, text) = (model.to_str().unwrap(), text.to_str().unwrap());
    for (args, expected) in [
        (vec!["eval", model], "--text"),
        (vec!["eval", model, "--text", "no/such/text"], "no/such/text"),
        (vec!["eval", model, "--text", text, "--compare", "speed=9"], "there are exact"),
        (vec!["eval", model, "--text", text, "--window", "60000", "--context", "64"], "--window"),
        (vec!["eval", model, "--text", text, "--window", "99", "--context", "64"], "--context"),
        (vec!["eval", model, "--boolq", text], "not a boolq question"),
    ] {
        let output = motley(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{args:?}: {said}");
    }
}
