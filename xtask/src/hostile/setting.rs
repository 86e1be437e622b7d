//! What a hostile run does to which server.

use crate::servers::{Context, MotleyServe};
use std::path::PathBuf;

/// What to do to which server.
#[derive(Debug, Clone)]
pub struct Hostile {
    /// `motley`.
    pub program: PathBuf,
    /// A small model with a byte-pair tokenizer.
    pub model: PathBuf,
    /// Hostile requests in all: half of them mixed, half as runs under the pre-tokenizers.
    pub requests: usize,
    /// Attackers at the same time.
    pub attackers: usize,
    pub seed: u64,
    /// Attacks left out, by name.
    pub without: Vec<String>,
}

impl Hostile {
    /// A server of `model` that does not wait long for anybody and computes in short steps, as one
    /// for many users should: the default step of 512 prompt tokens takes ten times what the
    /// honest client's whole answer does.
    pub(super) fn serve(&self, model: PathBuf) -> MotleyServe {
        let limits = ["--header-timeout", "2", "--write-timeout", "2"];
        let more = [limits, ["--chunk", "32", "--prefill-beside", "32"]].concat();
        MotleyServe {
            program: self.program.clone(),
            model,
            threads: 1,
            streams: 8,
            context: Context::Shared(4096),
            memory_bytes: None,
            exact: false,
            more: more.into_iter().map(str::to_owned).collect(),
        }
    }
}
