//! Vectors and scores of texts over HTTP, by a real server.

mod support;

use motley_model::Pooling;
use motley_testkit::fixtures::synthetic_of;
use motley_testkit::synth::{Arch, Preset, Request};
use serde_json::{Value, json};
use std::path::PathBuf;
use support::server::Server;

const EMBEDDINGS: &str = "/v1/embeddings";
const RERANK: &str = "/v1/rerank";

fn model(arch: Arch, pooling: Pooling) -> Option<PathBuf> {
    let preset = Request::of_preset(Preset::Test(arch));
    synthetic_of(&Request { pooling: Some(pooling), ..preset })
}

/// Vectors of a request that is answered.
fn vectors(server: &Server, body: &Value) -> Vec<Vec<f64>> {
    let (status, response) = server.post(EMBEDDINGS, body);
    assert_eq!(status, 200, "{response}");
    let texts = response["data"].as_array().unwrap().iter().enumerate();
    let vector = |(index, text): (usize, &Value)| {
        assert_eq!(text["index"], index);
        serde_json::from_value(text["embedding"].clone()).unwrap()
    };
    texts.map(vector).collect()
}

/// The field at fault and what is said of it.
fn refusal(server: &Server, path: &str, body: &Value) -> (String, String) {
    let (status, response) = server.post(path, body);
    assert_eq!(status, 400, "{response}");
    let text = |name: &str| response["error"][name].as_str().unwrap_or_default().to_owned();
    (text("param"), text("message"))
}

#[test]
fn texts_and_tokens_have_the_same_vectors_within_any_budget() {
    let Some(model) = model(Arch::Qwen3moe, Pooling::Last) else { return };
    let text = "The opposite of hot is cold.";
    let mut all = Vec::new();
    // From memory, and read from disk as they are needed.
    for loading in [&["--loading", "mapped"][..], &["--loading", "on-demand", "--memory", "232M"]] {
        let server =
            Server::start(&model, &[&["--exact", "--context", "2048"][..], loading].concat());
        let (_, tokens) =
            server.post("/tokenize", &json!({ "content": text, "add_special": true }));
        let of = |input: Value| vectors(&server, &json!({ "input": input }));
        let one = of(json!(text));
        assert_eq!(one, of(tokens["tokens"].clone()));
        assert_eq!(one[0], of(json!(["Gold", text]))[1]);
        let length: f64 = one[0].iter().map(|number| number * number).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
        all.push(one);
    }
    assert_eq!(all[0], all[1]);
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let Some(model) = model(Arch::Qwen3moe, Pooling::Last) else { return };
    let server = Server::start(&model, &["--context", "512"]);
    let refused = |body: Value| refusal(&server, EMBEDDINGS, &body);
    let long = "word ".repeat(2000);
    for (body, param, says) in [
        (json!({ "input": [] }), "input", "1 to 2048"),
        (json!({ "input": ["a", ""] }), "input", "empty"),
        (json!({ "input": long }), "input", "too long"),
        (json!({ "input": [1, 1_000_000] }), "input", "vocabulary"),
        (json!({ "input": "a", "dimensions": 0 }), "dimensions", "from 1 to"),
        (json!({ "input": "a", "dimensions": 100_000 }), "dimensions", "at most 256"),
        (json!({ "input": "a", "encoding_format": "int8" }), "body", "int8"),
    ] {
        let (of, message) = refused(body.clone());
        assert!(of == param && message.contains(says), "{body}: {of}: {message}");
    }
    let chat = json!({ "messages": [{ "role": "user", "content": "Hi" }] });
    let (param, message) = refusal(&server, "/v1/chat/completions", &chat);
    assert!(param == "model" && message.contains("vectors"), "{message}");
    let (param, message) = refusal(&server, RERANK, &json!({ "query": "a", "documents": ["b"] }));
    assert!(param == "model" && message.contains("/v1/embeddings"), "{message}");
}

#[test]
fn nothing_of_texts_is_kept_and_the_flag_for_it_says_so() {
    let Some(model) = model(Arch::Qwen3moe, Pooling::Last) else { return };
    let output = support::motley(&["serve", model.to_str().unwrap(), "--prefix-cache", "1G"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("--prefix-cache: vectors"), "{said}");
}

#[test]
fn a_model_that_answers_says_why_it_makes_no_vectors() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    let (param, message) = refusal(&server, EMBEDDINGS, &json!({ "input": "a" }));
    assert!(param == "model" && message.contains("its file does not say"), "{message}");
}

#[test]
fn texts_come_in_the_order_of_their_scores() {
    let Some(model) = model(Arch::Qwen3, Pooling::Rank) else { return };
    let server = Server::start(&model, &["--exact", "--context", "2048"]);
    let documents = ["Gold is a metal.", "Cold.", "A village by the sea."];
    let ask = |more: Value| {
        let mut body = json!({ "query": "What is hot?", "documents": documents });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, response) = server.post(RERANK, &body);
        assert_eq!(status, 200, "{response}");
        response
    };
    let all = ask(json!({}));
    let scores: Vec<f64> = all["results"].as_array().unwrap().iter().map(score).collect();
    assert!(scores.len() == 3 && scores.is_sorted_by(|a, b| a > b), "{scores:?}");
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    assert!(all["usage"]["prompt_tokens"].as_u64().unwrap() > 10);
    let best = ask(json!({ "top_n": 1, "return_documents": true }));
    let best = best["results"].as_array().unwrap();
    let index = best[0]["index"].as_u64().unwrap() as usize;
    assert_eq!((best.len(), best[0]["index"].clone()), (1, all["results"][0]["index"].clone()));
    assert_eq!(best[0]["document"], documents[index]);
    let objects = documents.map(|text| json!({ "text": text }));
    assert_eq!(ask(json!({ "documents": objects }))["results"], all["results"]);
    let (param, message) = refusal(&server, EMBEDDINGS, &json!({ "input": "a" }));
    assert!(param == "model" && message.contains("/v1/rerank"), "{message}");
}

fn score(result: &Value) -> f64 {
    result["relevance_score"].as_f64().unwrap()
}
