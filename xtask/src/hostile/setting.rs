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
    /// A server of `model` as one for strangers should be: it does not wait long for anybody,
    /// computes in short steps, and gives each stream a cache of its own, which nobody else's
    /// prompt can fill.
    pub(super) fn serve(&self, model: PathBuf) -> MotleyServe {
        let limits = ["--header-timeout", "2", "--write-timeout", "2"];
        let more = [limits, ["--prefill-beside", "32", "--step-time", "5"]].concat();
        MotleyServe {
            program: self.program.clone(),
            model,
            threads: 1,
            streams: 8,
            context: Context::Each(2048),
            memory_bytes: None,
            exact: false,
            more: more.into_iter().map(str::to_owned).collect(),
        }
    }
}
