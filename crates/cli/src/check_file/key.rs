//! What a verdict is about: the header llama.cpp is given, the files' lengths, and this program.
//! Weights are not part of it, because the child does not read them.

use anyhow::{Context, Result};
use motley_model::ModelFiles;
use sha2::{Digest, Sha256};
use std::fmt;

/// Name of the method; another one makes old verdicts void.
const METHOD: &str = "motley check-file 1";

/// A hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The key of these files under this program.
    pub(crate) fn of(files: &ModelFiles) -> Result<Self> {
        let layout = files.layout().with_context(|| files.paths[0].display().to_string())?;
        let mut hash = Sha256::new();
        for part in [METHOD.as_bytes(), program()?.as_bytes(), &layout.header] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        for header in &files.headers {
            hash.update(header.data_offset.to_le_bytes());
            hash.update(header.file_len.to_le_bytes());
        }
        Ok(Self(hash.finalize().into()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// This build: its version, and length and age of its file.
fn program() -> Result<String> {
    let path = std::env::current_exe().context("this program's own file")?;
    let file = path.metadata().with_context(|| path.display().to_string())?;
    let changed =
        file.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!("{version} {} {}", file.len(), changed.unwrap_or_default().as_nanos()))
}
