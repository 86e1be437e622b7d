//! Values that would end llama.cpp are refused by key, value and what is allowed; those of real
//! models pass.

mod common;

use common::Synth;
use motley_model::gguf::{GgmlType, GgufLimits, MetaValue, StringArray};
use motley_model::{MAX_TOKEN_BYTES, ModelFiles, ValueError, check_values};
use motley_testkit::fixtures::{dense, shared, synthetic};
use motley_testkit::synth::Arch;

/// A sound model with experts.
fn sound() -> Synth {
    let mut synth = Synth::new("qwen3moe").experts(0, 2);
    synth.metadata.insert("tokenizer.ggml.model", "gpt2");
    synth.key("attention.layer_norm_rms_epsilon", 1e-6f32)
}

fn check(synth: &Synth) -> Result<(), ValueError> {
    check_values(&[synth.header()])
}

fn refusal(synth: &Synth) -> String {
    check(synth).expect_err("refused").to_string()
}

fn with(key: &str, value: impl Into<MetaValue>) -> String {
    refusal(&sound().key(key, value))
}

fn with_tokens(tokens: &[&[u8]]) -> String {
    let mut synth = sound();
    synth.metadata.insert("tokenizer.ggml.tokens", tokens.iter().collect::<StringArray>());
    refusal(&synth)
}

#[test]
fn a_sound_model_passes() {
    check(&sound()).expect("sound");
}

#[test]
fn numbers_are_refused_by_key_and_range() {
    assert!(with("block_count", 0u32).contains("\"qwen3moe.block_count\" is 0; allowed: 1 to 512"));
    assert!(with("block_count", 513u32).contains("1 to 512"));
    assert!(with("nextn_predict_layers", 3u32).contains("0 to 2"));
    assert!(with("context_length", 0u32).contains("context_length"));
    assert!(with("embedding_length", 0u32).contains("embedding_length"));
    assert!(with("expert_count", 1025u32).contains("0 to 1024"));
    assert!(with("expert_count", 0u32).contains("expert_used_count"));
    assert!(with("expert_used_count", 9u32).contains("1 to 8"));
    assert!(with("expert_group_count", 3u32).contains("divisor of 8"));
    assert!(with("expert_group_count", 8u32).contains("0 to 7"));
    assert!(with("expert_gating_func", 5u32).contains("0 to 4"));
    assert!(with("attention.head_count_kv", 3u32).contains("4 heads"));
    assert!(with("attention.key_length", 0u32).contains("key_length"));
    let groups = sound().key("expert_group_count", 4u32);
    assert!(refusal(&groups.key("expert_group_used_count", 4u32)).contains("1 to 3"));
}

#[test]
fn reals_are_finite_and_epsilons_positive() {
    let epsilon = "attention.layer_norm_rms_epsilon";
    assert!(with(epsilon, -1.0f32).contains("is -1; allowed: a number above 0"));
    assert!(with(epsilon, f32::NAN).contains("finite"));
    assert!(with("rope.freq_base", f32::INFINITY).contains("finite"));
    assert!(with("rope.freq_base", 0.0f32).contains("above 0"));
    assert!(with("rope.scaling.type", "\x1b[2Jyern").contains("\\u{1b}[2Jyern"));
}

#[test]
fn tokenizers_that_cannot_read_are_refused() {
    for model in ["none", "no_vocab", "test", "unheard-of"] {
        let mut synth = sound();
        synth.metadata.insert("tokenizer.ggml.model", model);
        assert!(refusal(&synth).contains(model));
    }
    let mut synth = sound();
    synth.metadata.remove("tokenizer.ggml.tokens");
    assert!(refusal(&synth).contains("tokenizer.ggml.tokens"));
}

#[test]
fn tokens_have_texts_of_their_own() {
    assert!(with_tokens(&[]).contains("0 elements"));
    assert!(with_tokens(&[b"a", b"b", b"a"]).contains("tokens 0 and 2 are both \"a\""));
    // A C string ends at NUL, and an empty one is called by its place.
    assert!(with_tokens(&[b"a", b"a\0b"]).contains("both \"a\""));
    assert!(with_tokens(&[b"[EMPTY_1]", b""]).contains("[EMPTY_1]"));
    let long = vec![b'A'; MAX_TOKEN_BYTES + 1];
    assert!(with_tokens(&[b"a", &long]).contains("token 1 has 4097 bytes"));
}

#[test]
fn lists_beside_tokens_are_long_enough() {
    for key in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
        let mut synth = sound();
        synth.metadata.insert(key, vec![1i32; 99]);
        assert!(refusal(&synth).contains("99 elements for 100 tokens"));
    }
}

#[test]
fn norms_and_biases_are_real_numbers() {
    let norm = |ty| sound().tensor("blk.0.attn_norm.weight", &[256], ty);
    check(&norm(GgmlType::F32)).expect("sound");
    assert!(refusal(&norm(GgmlType::I32)).contains("i32"));
    assert!(refusal(&norm(GgmlType::Q4_K)).contains("attn_norm"));
}

#[test]
fn real_and_synthetic_models_pass() {
    let trained = shared("tiny-wiki-moe/tiny-wiki-moe-q8_0.gguf");
    let synthetic = Arch::ALL.iter().filter_map(|arch| synthetic(*arch));
    for path in synthetic.chain(dense()).chain(trained) {
        let files = ModelFiles::open(&path, &GgufLimits::default()).expect("it opens");
        check_values(&files.headers).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
