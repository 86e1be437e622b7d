//! No text ends the process or holds it up, whatever pre-tokenizer a file names: long runs of
//! every class of characters, through each that llama.cpp has. Judges no tokens.
//!
//! A stack overflow or an assertion kills the test's process, which is how it fails. With
//! `MOTLEY_LONG_TESTS` set, every name meets every run in every length; that takes minutes.

use motley_ggml::{
    Model, ModelOptions, Parsing, Runtime, Seam, TokenizeError, VirtualFile, Weights,
};
use motley_model::gguf::{GgufHeader, rewrite_header};
use motley_testkit::fixtures;
use motley_testkit::gguf_source::read_header;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Every name the pinned llama.cpp compares `tokenizer.ggml.pre` with.
const PRE_TOKENIZERS: &str = "
    a.x-4.0 afmoe bailingmoe bailingmoe2 bloom chameleon chatglm-bpe codeshell cohere2moe
    command-r dbrx deepseek-coder deepseek-llm deepseek-r1-qwen deepseek-v3 default exaone
    exaone-moe exaone4 f2llmv2 falcon falcon-h1 falcon3 gemma4 gigachat glm4 glm5 gpt-2 gpt-4o
    gpt3-finnish granite-docling granite-embed-multi-311m granite-embed-multi-97m grok-2 hunyuan
    hunyuan-dense hy_v4 jais jais-2 jina-de jina-es jina-v1-en jina-v2-code jina-v2-de jina-v2-es
    jina-v5-nano joyai-llm kanana2 kimi-k2 kormo laguna lfm2 llada-moe llama-bpe llama-v3 llama3
    llama4 megrez mellum mellum2 midm-2.0 minerva-7b minicpm5 minimax-m2 mmbert modern-bert mpt
    olmo phi-2 pixtral poro-chat qwen2 qwen35 refact roberta-bpe sarvam-moe seed-coder smaug-bpe
    smollm solar-open spark2_5 stablelm2 starcoder superbpe talkie tekken tiny_aya trillion
    ufakzeka viking whitespace youtu
";
/// One of each kind of expression that is left to `std::regex`, and one that is not.
const KINDS: &str = "gpt-4o deepseek-v3 exaone-moe poro-chat jais-2 qwen2";
/// What runs are made of that every pre-tokenizer meets: one of each class, and a mixture.
const RUNS: &[&str] = &["a", "7", " ", "\n", "!", "中", "😀", "\u{301}", "a "];
/// Relatives of those.
const OTHER_RUNS: &[&str] = &[
    "A", "aB", "あ", "한", "ع", "ж", "a\u{301}", "\n ", "\t", "\u{a0}", "/", "+", "'", "\u{1}",
    "\u{e000}", "abc ", "a1", "777 ",
];
/// What ends them; some expressions look for an end.
const ENDS: &[&str] = &["", "x", "7", "中"];
/// More than the slowest accepted text takes on a slow machine under load.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing beside the text.
const PLAIN: Parsing = Parsing { begin: false, control: true };

/// The trained model's vocabulary under another pre-tokenizer. No weight is read.
fn model(header: &GgufHeader, path: &Path, pre: &str) -> Model {
    let mut header = header.clone();
    header.metadata.insert("tokenizer.ggml.pre", pre);
    let layout = rewrite_header(&[header]).expect("a header");
    let skipped = vec![true; layout.extents.len()];
    let file = VirtualFile::new(layout, vec![File::open(path).expect("the model")], skipped);
    let runtime = Runtime::start(Seam::Absent).expect("the first runtime");
    let options =
        ModelOptions { repack: false, gpus: Vec::new(), gpu_layers: 0, gpu_experts: false };
    Model::load(runtime, Weights::Read(file), &options, &mut |_| true).expect("it loads")
}

fn run(unit: &str, chars: usize, end: &str) -> String {
    unit.chars().cycle().take(chars).collect::<String>() + end
}

/// Tokens or a refusal, and soon.
#[allow(clippy::disallowed_methods, reason = "a test of how long it takes")]
fn meet(model: &Model, pre: &str, unit: &str, chars: usize, end: &str) -> bool {
    let begun = Instant::now();
    let outcome = model.tokenize(&run(unit, chars, end), PLAIN, None);
    let took = begun.elapsed();
    assert!(took < PATIENCE, "{pre}: {chars} of {unit:?} before {end:?} took {took:?}");
    outcome.is_ok()
}

fn trained() -> Option<(PathBuf, GgufHeader)> {
    let path = fixtures::trained("q4_k_m")?;
    let header = read_header(&path).expect("a header");
    Some((path, header))
}

/// Every unit that `pre` meets.
fn units(pre: &str) -> impl Iterator<Item = &'static str> {
    let others = if KINDS.contains(pre) || is_long() { OTHER_RUNS } else { &[] };
    RUNS.iter().chain(others).copied()
}

fn is_long() -> bool {
    std::env::var_os("MOTLEY_LONG_TESTS").is_some()
}

#[test]
fn runs_of_twelve_thousand_end_no_process() {
    let Some((path, header)) = trained() else { return };
    for pre in PRE_TOKENIZERS.split_whitespace() {
        let model = model(&header, &path, pre);
        for (index, unit) in units(pre).enumerate() {
            let is_told = meet(&model, pre, unit, 12_000, ENDS[index % ENDS.len()]);
            let is_letters = unit.chars().all(char::is_alphabetic);
            assert!(is_told || !is_letters, "{pre}: 12,000 of {unit:?} are not too many");
        }
    }
}

#[test]
fn longer_runs_end_no_process() {
    let Some((path, header)) = trained() else { return };
    for pre in if is_long() { PRE_TOKENIZERS } else { KINDS }.split_whitespace() {
        let model = model(&header, &path, pre);
        for unit in if is_long() { units(pre).collect() } else { vec!["a", " ", "!", "中"] } {
            for end in if is_long() { ENDS } else { &ENDS[2..3] } {
                meet(&model, pre, unit, 100_000, end);
                meet(&model, pre, unit, 1_000_000, end);
            }
        }
    }
}

#[test]
fn what_takes_time_with_its_square_is_refused() {
    let Some((path, header)) = trained() else { return };
    for (pre, unit) in [("deepseek-llm", " "), ("jais-2", " "), ("superbpe", "7")] {
        let model = model(&header, &path, pre);
        let refused = model.tokenize(&run(unit, 12_000, "7"), PLAIN, None);
        assert!(matches!(refused, Err(TokenizeError::Runs { .. })), "{pre}: {refused:?}");
        assert!(model.tokenize(&run(unit, 1_000, "7"), PLAIN, None).is_ok(), "{pre}");
    }
    let model = model(&header, &path, "whitespace");
    assert!(matches!(model.tokenize("a  b", PLAIN, None), Err(TokenizeError::WideSpace)));
    assert!(model.tokenize("a b", PLAIN, None).is_ok());
}

#[test]
fn texts_that_cannot_fit_are_refused_by_their_bytes_and_marks() {
    let Some((path, header)) = trained() else { return };
    let model = model(&header, &path, "gpt-4o");
    let long = "word ".repeat(10_000);
    assert!(matches!(
        model.tokenize(&long, PLAIN, Some(100)),
        Err(TokenizeError::Long { bytes: 50_000, .. })
    ));
    let tokens = model.tokenize(&long, PLAIN, None).expect("it is no burden");
    assert_eq!(model.tokenize(&long, PLAIN, Some(tokens.len())).expect("it fits"), tokens);
    let marks = "<|endoftext|>a".repeat(5_000);
    assert!(matches!(
        model.tokenize(&marks, PLAIN, None),
        Err(TokenizeError::CutTokens { count: 5_000, .. })
    ));
    let plain = Parsing { begin: false, control: false };
    assert!(model.tokenize(&marks, plain, None).is_ok());
}

/// The names above are those of llama.cpp's source, where it is unpacked.
#[test]
fn no_pre_tokenizer_is_missing() {
    let Some(source) = vocabulary_source() else { return };
    for part in source.split("tokenizer_pre == \"").skip(1) {
        let name = part.split('"').next().expect("a name ends");
        assert!(PRE_TOKENIZERS.split_whitespace().any(|known| known == name), "{name}");
    }
}

fn vocabulary_source() -> Option<String> {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock = std::fs::read_to_string(lock).expect("Cargo.lock");
    let version =
        lock.split("name = \"llama-cpp-sys-2\"\nversion = \"").nth(1)?.split('"').next()?;
    let cargo = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let inside = format!("llama-cpp-sys-2-{version}/llama.cpp/src/llama-vocab.cpp");
    let registries = std::fs::read_dir(cargo.join("registry/src")).ok()?;
    registries
        .flatten()
        .find_map(|registry| std::fs::read_to_string(registry.path().join(&inside)).ok())
}
