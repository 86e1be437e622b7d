//! Gaps in texts by the real server: `suffix` of `/v1/completions` and llama.cpp's `/infill`, by a model
//! whose vocabulary has tokens for gaps and by one that has none.

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use support::changed::changed;
use support::server::Server;

/// Tokens that mark a gap: three of the vocabulary's own that texts do not use.
const MARKS: [(&str, u32); 3] = [
    ("tokenizer.ggml.fim_pre_token_id", 5),
    ("tokenizer.ggml.fim_suf_token_id", 6),
    ("tokenizer.ggml.fim_mid_token_id", 7),
];

#[test]
fn a_gap_is_filled() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let marked = changed(
        &model,
        |mut metadata| {
            MARKS.into_iter().for_each(|(key, token)| drop(metadata.insert(key, token)));
            metadata
        },
        |_, _| {},
    );
    let server = Server::start(marked.path(), &["--exact"]);
    let asked = json!({ "input_prefix": "def add(a, b):\n", "input_suffix": "\nprint(add(1, 2))",
        "prompt": "    ret", "n_predict": 8, "temperature": 0 });
    let (status, filled) = server.post("/infill", &asked);
    assert_eq!(status, 200, "{filled}");
    assert_eq!((&filled["stop"], &filled["tokens_predicted"]), (&json!(true), &json!(8)));
    assert_eq!(filled["stop_type"], "limit");
    let content = filled["content"].as_str().expect("a text");
    // The same gap, asked for in OpenAI's way, and by the tokens themselves.
    let (prefix, suffix) = ("def add(a, b):\n    ret", "\nprint(add(1, 2))");
    let continued =
        json!({ "prompt": prefix, "suffix": suffix, "max_tokens": 8, "temperature": 0 });
    assert_eq!(text(&server, &continued), content);
    let tokens = |text: &str| {
        let (_, said) =
            server.post("/tokenize", &json!({ "content": text, "parse_special": false }));
        said["tokens"].as_array().expect("tokens").clone()
    };
    let [pre, suf, mid] = MARKS.map(|(_, token)| vec![json!(token)]);
    let prompt = [pre, tokens(prefix), suf, tokens(suffix), mid].concat();
    assert_eq!(filled["tokens_evaluated"], prompt.len());
    let by_tokens = json!({ "prompt": prompt, "max_tokens": 8, "temperature": 0 });
    assert_eq!(text(&server, &by_tokens), content);
    streamed(&server, asked, content);
}

fn streamed(server: &Server, mut asked: Value, content: &str) {
    asked["stream"] = json!(true);
    let (status, events) = server.post("/infill", &asked);
    let events = events.as_str().expect("events");
    assert_eq!(status, 200, "{events}");
    let pieces: Vec<Value> = events
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let said: String = pieces.iter().filter_map(|piece| piece["content"].as_str()).collect();
    assert_eq!(said, content);
    assert_eq!(pieces.last().map(|piece| &piece["stop"]), Some(&json!(true)));
}

#[test]
fn a_model_without_tokens_for_gaps_says_so() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &[]);
    for (path, param, body) in [
        ("/infill", "input_suffix", json!({ "input_prefix": "a", "input_suffix": "b" })),
        ("/v1/completions", "suffix", json!({ "prompt": "a", "suffix": "b" })),
    ] {
        let (status, answer) = server.post(path, &body);
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains("`m`") && words.contains("gap"), "{words}");
    }
    // An empty one is none.
    let (status, answer) = server.post("/v1/completions", &json!({ "prompt": "a", "suffix": "" }));
    assert_eq!(status, 200, "{answer}");
}

fn text(server: &Server, request: &Value) -> String {
    let (status, answer) = server.post("/v1/completions", request);
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0]["text"].as_str().expect("a text").to_owned()
}
