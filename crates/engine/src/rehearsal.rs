//! A header tried with everything but the weights: loaded by llama.cpp, tokens made, the chat
//! template rendered, a few tokens computed. llama.cpp ends the whole process on some headers, so
//! this belongs into a process that may end.
//!
//! No byte of a tensor is read: weights are zeros, in pages that take no memory. Everything runs on
//! the CPU, whatever devices there are, and weights keep the file's order.

use crate::engine::{Engine, EngineError, EngineOptions};
use crate::session::{SessionError, SessionOptions};
use crate::text::chat::ChatMessage;
use crate::weights::WeightsError;
use motley_ggml::{Runtime, TokenizeError, VirtualFile, Weights};
use motley_model::{ModelFiles, ModelSpec, check_values};
use motley_plan::cores::{ThreadSet, ThreadSets};
use std::path::Path;
use std::sync::Arc;

/// What is tokenized: letters of several scripts, numbers, signs, white space, and what a
/// pre-tokenizer splits at.
const TEXT: &str = "Hello, world! It's 1234567.89 naïve Ünïcödé\tAЖя 世界 日本語テキスト 한국어 مرحبا \
                    नमस्ते ไทย 🙂🏽 <|im_start|>user\r\n\n  fn main() { let x = \"a_b\"; }   ";
/// Tokens of it that are computed, at most, and how many at once: the first chunk stays in the
/// cache, and what follows computes with it.
const PROMPT_TOKENS: usize = 16;
const CHUNK_TOKENS: u32 = 8;
/// KV cache.
const CONTEXT_TOKENS: u32 = 256;

/// Why a model cannot be used, said without an end of the process.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// It cannot be loaded.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It cannot compute.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Its text does not become tokens.
    #[error("the vocabulary does not work: {0}")]
    Tokenize(#[from] TokenizeError),
}

/// Does with the model what a run does.
pub fn rehearse(
    runtime: Runtime,
    (spec, files): (ModelSpec, ModelFiles),
) -> Result<(), RehearsalError> {
    let path = files.paths[0].clone();
    check_values(&files.headers)
        .map_err(|source| EngineError::Values { path: path.clone(), source })?;
    let weights = no_weights(&path, &files).map_err(EngineError::from)?;
    let options = EngineOptions {
        repack: false,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        yields_cores: false,
        ..EngineOptions::default()
    };
    let opened = (Arc::new(spec), files);
    let engine = Engine::load_weights(runtime, opened, (weights, None), &options, &mut |_| true)?;
    let mut prompt = read(&engine)?;
    prompt.truncate(PROMPT_TOKENS);
    compute(&engine, &prompt)?;
    Ok(())
}

/// Text becomes tokens in every way there is, and tokens become text; the tokens of the text.
fn read(engine: &Engine) -> Result<Vec<i32>, TokenizeError> {
    // A template may refuse a conversation; what matters here is that it ends.
    let _ = engine.chat_tokens(&[ChatMessage::new("user", TEXT)]);
    let text = match engine.tokenize_plain(TEXT) {
        // That text is refused, others are not.
        Err(TokenizeError::WideSpace) => TEXT.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.map(|_| TEXT.to_owned())?,
    };
    engine.begin_tokens()?;
    (0..engine.vocab_size() as i32).for_each(|token| drop(engine.token_bytes(token)));
    engine.tokenize(&text)
}

/// A prompt in chunks, and a token after it.
fn compute(engine: &Engine, prompt: &[i32]) -> Result<(), SessionError> {
    let shape = SessionOptions {
        context_tokens: CONTEXT_TOKENS,
        chunk_tokens: CHUNK_TOKENS,
        ..SessionOptions::default()
    };
    let mut session = engine.session(&shape)?;
    of_zeros(session.prefill(prompt))?;
    of_zeros(session.decode(prompt.first().copied().unwrap_or(0)))
}

/// Logits of zeros are no better than zeros; what comes with a model's weights is judged in a run.
fn of_zeros(computed: Result<(), SessionError>) -> Result<(), SessionError> {
    match computed {
        Err(SessionError::Logits { .. }) => Ok(()),
        other => other,
    }
}

/// The header, and zeros for weights: no file is opened.
fn no_weights(path: &Path, files: &ModelFiles) -> Result<Weights, WeightsError> {
    let layout =
        files.layout().map_err(|source| WeightsError::Layout { path: path.into(), source })?;
    let tensors = files.headers.iter().map(|header| header.tensors.len()).sum();
    Ok(Weights::Zeros(VirtualFile::new(layout, Vec::new(), vec![true; tensors])))
}
