//! What the generators take from an existing GGUF: its header, and its tokenizer.

use anyhow::{Context, Result};
use motley_model::gguf::{GgufHeader, GgufLimits, MetaValue, Metadata, StringArray};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Keys that make up a tokenizer, chat template included.
const TOKENIZER_PREFIX: &str = "tokenizer.";
/// Types of tokens as llama.cpp numbers them.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const BYTE: i32 = 6;
/// How the tokenizer of bytes opens turns, and that it knows tools.
const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
    {{ message.content }}<|im_end|>\n{% endfor %}\
    {% if tools %}{{ tools | tojson }}{% endif %}<|im_start|>assistant\n";

/// Reads a header with the default limits, naming the file when it cannot.
pub fn read_header(path: &Path) -> Result<GgufHeader> {
    File::open(path)
        .map_err(anyhow::Error::from)
        .and_then(|file| Ok(GgufHeader::read(BufReader::new(file), &GgufLimits::default())?))
        .with_context(|| format!("cannot read {}", path.display()))
}

/// A tokenizer, as the metadata entries that define it.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    metadata: Metadata,
    vocab: u64,
}

impl Tokenizer {
    /// The tokenizer of a GGUF file.
    pub fn read(path: &Path) -> Result<Self> {
        Self::of_metadata(read_header(path)?.metadata)
            .with_context(|| format!("{} has no tokenizer.ggml.tokens", path.display()))
    }

    fn of_metadata(mut metadata: Metadata) -> Option<Self> {
        metadata.retain(|key| key.starts_with(TOKENIZER_PREFIX));
        let tokens = metadata.get("tokenizer.ggml.tokens")?.as_array()?;
        let vocab = tokens.len() as u64;
        (vocab > 0).then_some(Self { metadata, vocab })
    }

    /// Every byte, some signs and the marks of turns: the smallest tokenizer that reads any text,
    /// made of nothing. For models that take milliseconds to load.
    pub fn of_bytes() -> Self {
        let mut tokens = vec![("<unk>".to_owned(), UNKNOWN)];
        let marks = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"];
        tokens.extend(marks.map(|mark| (mark.to_owned(), CONTROL)));
        tokens.extend((0..=255).map(|byte| (format!("<0x{byte:02X}>"), BYTE)));
        let signs = ["\u{2581}", "e", "t", "\u{2581}t", "he", "\u{2581}the", "{\"", "\":", "}"];
        tokens.extend(signs.map(|sign| (sign.to_owned(), NORMAL)));
        let mut metadata = Metadata::new();
        metadata.insert("tokenizer.ggml.model", "llama");
        metadata.insert("tokenizer.ggml.pre", "default");
        let texts: StringArray = tokens.iter().map(|(text, _)| text).collect();
        metadata.insert("tokenizer.ggml.tokens", texts);
        let scores: Vec<f32> = (0..tokens.len()).map(|at| -(at as f32)).collect();
        metadata.insert("tokenizer.ggml.scores", scores);
        let types: Vec<i32> = tokens.iter().map(|(_, ty)| *ty).collect();
        metadata.insert("tokenizer.ggml.token_type", types);
        metadata.insert("tokenizer.ggml.unknown_token_id", 0u32);
        metadata.insert("tokenizer.ggml.bos_token_id", 1u32);
        metadata.insert("tokenizer.ggml.eos_token_id", 4u32);
        metadata.insert("tokenizer.chat_template", TEMPLATE);
        Self::of_metadata(metadata).expect("it has tokens")
    }

    /// Number of tokens.
    pub fn vocab(&self) -> u64 {
        self.vocab
    }

    /// The entries in file order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &MetaValue)> {
        self.metadata.iter()
    }

    /// A tokenizer of these tokens only.
    #[cfg(test)]
    pub(crate) fn for_tests(tokens: &[&str]) -> Self {
        let mut metadata = Metadata::new();
        metadata.insert("tokenizer.ggml.model", "gpt2");
        let tokens: StringArray = tokens.iter().collect();
        metadata.insert("tokenizer.ggml.tokens", tokens);
        Self::of_metadata(metadata).expect("tokens")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_model::gguf::MetaArray;
    use std::collections::HashSet;

    #[test]
    fn the_tokenizer_of_bytes_has_each_once_and_a_score_for_it() {
        let tokenizer = Tokenizer::of_bytes();
        let list = |wanted: &str| {
            let found = tokenizer.entries().find(|(key, _)| *key == wanted);
            found.and_then(|(_, value)| value.as_array()).expect("a list").clone()
        };
        let MetaArray::String(tokens) = list("tokenizer.ggml.tokens") else { panic!("no texts") };
        let different: HashSet<_> = tokens.iter().collect();
        assert_eq!(different.len(), tokenizer.vocab() as usize);
        assert!((0..=255).all(|byte| different.contains(format!("<0x{byte:02X}>").as_bytes())));
        for beside in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
            assert_eq!(list(beside).len(), tokens.len());
        }
    }
}
