//! Every pre-tokenizer llama.cpp has, and a model rewritten to use one: the patterns that cut
//! text into words differ, and some are matched by recursion.

use anyhow::{Context, Result, ensure};
use motley_model::gguf::{GgufWriter, TensorDesc};
use motley_testkit::gguf_source::read_header;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom};
use std::path::Path;

/// The key that names it in a GGUF.
const KEY: &str = "tokenizer.ggml.pre";

/// Names that `llama_vocab::impl::load` compares `tokenizer_pre` with, of llama-cpp-sys-2 0.1.160.
#[rustfmt::skip]
pub const NAMES: [&str; 92] = [
    "a.x-4.0", "afmoe", "bailingmoe", "bailingmoe2", "bloom", "chameleon", "chatglm-bpe",
    "codeshell", "cohere2moe", "command-r", "dbrx", "deepseek-coder", "deepseek-llm",
    "deepseek-r1-qwen", "deepseek-v3", "default", "exaone", "exaone-moe", "exaone4", "f2llmv2",
    "falcon", "falcon-h1", "falcon3", "gemma4", "gigachat", "glm4", "glm5", "gpt-2", "gpt-4o",
    "gpt3-finnish", "granite-docling", "granite-embed-multi-311m", "granite-embed-multi-97m",
    "grok-2", "hunyuan", "hunyuan-dense", "hy_v4", "jais", "jais-2", "jina-de", "jina-es",
    "jina-v1-en", "jina-v2-code", "jina-v2-de", "jina-v2-es", "jina-v5-nano", "joyai-llm",
    "kanana2", "kimi-k2", "kormo", "laguna", "lfm2", "llada-moe", "llama-bpe", "llama-v3",
    "llama3", "llama4", "megrez", "mellum", "mellum2", "midm-2.0", "minerva-7b", "minicpm5",
    "minimax-m2", "mmbert", "modern-bert", "mpt", "olmo", "phi-2", "pixtral", "poro-chat",
    "qwen2", "qwen35", "refact", "roberta-bpe", "sarvam-moe", "seed-coder", "smaug-bpe", "smollm",
    "solar-open", "spark2_5", "stablelm2", "starcoder", "superbpe", "talkie", "tekken",
    "tiny_aya", "trillion", "ufakzeka", "viking", "whitespace", "youtu",
];

/// Writes `model` to `to` with another pre-tokenizer; nothing else changes.
pub(super) fn rewrite(model: &Path, name: &str, to: &Path) -> Result<()> {
    let mut header = read_header(model)?;
    let kind = header.metadata.get("tokenizer.ggml.model").and_then(|kind| kind.as_str());
    ensure!(kind == Some("gpt2"), "{} has no byte-pair tokenizer", model.display());
    header.metadata.insert(KEY, name);
    let tensors: Vec<TensorDesc> = header
        .tensors
        .iter()
        .map(|tensor| TensorDesc {
            name: tensor.name.clone(),
            dims: tensor.dims.clone(),
            ty: tensor.ty,
        })
        .collect();
    let mut source = File::open(model)?;
    let sink = File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    let mut writer = GgufWriter::new(BufWriter::new(sink), &header.metadata, &tensors)?;
    for tensor in &header.tensors {
        source.seek(SeekFrom::Start(tensor.file_offset))?;
        let mut bytes = vec![0; usize::try_from(tensor.len_bytes)?];
        source.read_exact(&mut bytes)?;
        writer.tensor(&tensor.name, &bytes)?;
    }
    writer.finish()?;
    Ok(())
}
