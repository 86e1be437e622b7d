//! Which layers keep a window of keys and values only: by architecture, and as files say.

mod common;

use common::{LAYERS, Synth};
use motley_model::gguf::MetaValue;
use motley_model::{Attention, ModelSpec};

/// Keys and values of one layer: 2 heads of 16 for each.
const LAYER: u64 = 2 * (16 + 16);

fn attention(synth: &Synth) -> Attention {
    ModelSpec::from_headers(&[synth.header()]).unwrap().shape.attention
}

fn layers_with_windows(synth: &Synth) -> (u64, Option<u64>) {
    let attention = attention(synth);
    assert_eq!(attention.kv_elements_per_token, u64::from(LAYERS) * LAYER);
    (attention.window_elements_per_token / LAYER, attention.sliding_window)
}

fn pattern(layers: &[bool]) -> MetaValue {
    layers.to_vec().into()
}

#[test]
fn windows_follow_their_architecture() {
    let named = |architecture| Synth::new(architecture).key("attention.sliding_window", 128u32);
    // Of three layers: every second, all but the last of six or four, all but the first of four.
    for (architecture, windows) in [
        ("gpt-oss", 2),
        ("gemma3", 3),
        ("afmoe", 3),
        ("cohere2", 3),
        ("cohere2moe", 2),
        ("laguna", 2),
        // By the file's own pattern only.
        ("gemma4", 0),
        ("mimo2", 0),
        // Not known: everything is kept.
        ("qwen3moe", 0),
        ("phi3", 0),
        ("of-tomorrow", 0),
    ] {
        let found = layers_with_windows(&named(architecture));
        assert_eq!(found, (windows, Some(128)), "{architecture}");
    }
}

#[test]
fn windows_without_a_key_are_those_of_the_code() {
    for (architecture, found) in [
        ("llama4", (3, Some(8192))),
        ("gemma2", (2, Some(4096))),
        ("gpt-oss", (0, None)),
        ("smallthinker", (0, None)),
    ] {
        assert_eq!(layers_with_windows(&Synth::new(architecture)), found, "{architecture}");
    }
    let none = Synth::new("llama4").key("attention.sliding_window", 0u32);
    assert_eq!(layers_with_windows(&none), (0, None));
    let fixed = Synth::new("smallthinker").key("attention.sliding_window", 128u32);
    assert_eq!(layers_with_windows(&fixed), (2, Some(4096)));
}

#[test]
fn a_pattern_in_the_file_is_before_the_codes() {
    let with = |architecture: &str, pattern: MetaValue| {
        let synth = Synth::new(architecture).key("attention.sliding_window", 64u32);
        layers_with_windows(&synth.key("attention.sliding_window_pattern", pattern)).0
    };
    for architecture in ["gpt-oss", "gemma4", "step35"] {
        assert_eq!(with(architecture, pattern(&[false, true, false])), 1, "{architecture}");
        assert_eq!(with(architecture, pattern(&[true])), 1, "{architecture}: too short");
    }
    // A period: 0 is every layer, 1 is none.
    for (period, windows) in [(0u32, 3), (1, 0), (2, 2), (3, 2)] {
        assert_eq!(with("gpt-oss", period.into()), windows, "every {period}");
    }
}

#[test]
fn layers_with_windows_may_have_heads_of_their_own() {
    let keys = Synth::new("gemma4")
        .key("attention.sliding_window", 64u32)
        .key("attention.sliding_window_pattern", pattern(&[true, true, false]))
        .key("attention.key_length_swa", 8u32)
        .key("attention.value_length_swa", 8u32);
    let found = attention(&keys);
    assert_eq!(found.window_elements_per_token, 2 * 2 * (8 + 8));
    assert_eq!(found.kv_elements_per_token, 2 * 2 * (8 + 8) + LAYER);
}

#[test]
fn an_indexer_keeps_one_key_more() {
    let found = attention(&Synth::new("deepseek32").key("attention.indexer.key_length", 64u32));
    assert_eq!(found.kv_elements_per_token, u64::from(LAYERS) * (LAYER + 64));
}
