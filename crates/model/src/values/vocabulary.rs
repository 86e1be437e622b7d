//! The tokenizer: its kind, and tokens as `llama_vocab::impl::load` takes them.

use super::error::{ValueError, shown};
use crate::gguf::{MetaArray, MetaValue, Metadata, StringArray};
use std::collections::HashMap;

/// Most bytes of one token. Real ones have up to some hundreds; llama.cpp's tries recurse once per
/// byte.
pub const MAX_TOKEN_BYTES: usize = 4096;
/// Tokenizers with which llama.cpp reads text. `none`, `no_vocab` and `test` load and then end the
/// process at the first text.
const TOKENIZERS: [&str; 9] =
    ["llama", "bert", "gpt2", "hybriddna", "whitespace", "t5", "rwkv", "plamo2", "gemma4"];

const TOKENS: &str = "tokenizer.ggml.tokens";
const SCORES: &str = "tokenizer.ggml.scores";
const TYPES: &str = "tokenizer.ggml.token_type";

pub(super) fn check(metadata: &Metadata) -> Result<(), ValueError> {
    kind(metadata)?;
    let Some(MetaValue::Array(MetaArray::String(tokens))) = metadata.get(TOKENS) else {
        return Err(ValueError::List { key: TOKENS, wanted: "texts" });
    };
    if tokens.is_empty() {
        return Err(ValueError::Short { key: TOKENS, len: 0, tokens: 1 });
    }
    for key in [SCORES, TYPES] {
        beside(metadata, key, tokens.len())?;
    }
    texts(tokens)
}

fn kind(metadata: &Metadata) -> Result<(), ValueError> {
    let model = match metadata.get("tokenizer.ggml.model") {
        Some(MetaValue::String(model)) => shown(model.as_bytes()),
        _ => String::new(),
    };
    if TOKENIZERS.contains(&model.as_str()) {
        return Ok(());
    }
    Err(ValueError::Tokenizer { model, known: TOKENIZERS.join(", ") })
}

/// A list with an element for each token, where the file has one.
fn beside(metadata: &Metadata, key: &'static str, tokens: usize) -> Result<(), ValueError> {
    match metadata.get(key) {
        None => Ok(()),
        Some(MetaValue::Array(list)) if list.len() >= tokens => Ok(()),
        Some(MetaValue::Array(list)) => Err(ValueError::Short { key, len: list.len(), tokens }),
        Some(_) => Err(ValueError::List { key, wanted: "numbers" }),
    }
}

/// Every token has a text of its own, of bounded length.
fn texts(tokens: &StringArray) -> Result<(), ValueError> {
    let mut seen: HashMap<std::borrow::Cow<'_, [u8]>, usize> = HashMap::with_capacity(tokens.len());
    for (token, text) in tokens.iter().enumerate() {
        if text.len() > MAX_TOKEN_BYTES {
            let (len, limit) = (text.len(), MAX_TOKEN_BYTES);
            return Err(ValueError::LongToken { token, len, limit });
        }
        if let Some(first) = seen.insert(as_engine_sees(token, text), token) {
            let text = shown(&as_engine_sees(token, text));
            return Err(ValueError::SameToken { first, second: token, text });
        }
    }
    Ok(())
}

/// llama.cpp reads C strings, which end at NUL, and gives empty ones a name by their place.
fn as_engine_sees(token: usize, text: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    match &text[..end] {
        [] => format!("[EMPTY_{token}]").into_bytes().into(),
        text => text.into(),
    }
}
