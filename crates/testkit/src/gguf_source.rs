//! What the generators take from an existing GGUF: its header, and its tokenizer.

use anyhow::{Context, Result};
use motley_model::gguf::{GgufHeader, GgufLimits, MetaValue, Metadata};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Keys that make up a tokenizer, chat template included.
const TOKENIZER_PREFIX: &str = "tokenizer.";

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
        let tokens: motley_model::gguf::StringArray = tokens.iter().collect();
        metadata.insert("tokenizer.ggml.tokens", tokens);
        Self::of_metadata(metadata).expect("tokens")
    }
}
