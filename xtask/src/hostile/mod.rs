//! Thousands of hostile requests against a real server, beside an honest client: what was lost,
//! what the server grew to, and how long the honest client waited. The attacks are those of
//! `motley_testkit::hostile`.
//!
//! * `honest`: the client that only wants its answers.
//! * `mixed`: every kind of attack at once, beside it.
//! * `runs`: long runs of one class of characters, under each pre-tokenizer in turn.
//! * `pre_tokenizers`: their names, and models rewritten to use them.
//! * `report`: what came of it all, and whether that will do.

mod honest;
mod mixed;
mod pre_tokenizers;
mod report;
mod runs;

pub use pre_tokenizers::NAMES as PRE_TOKENIZERS;
pub use report::{Latency, Mixed, Report, Runs, Tally};

use crate::servers::{Context, MotleyServe};
use anyhow::Result;
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

/// Carries all of it out; `say` is told how it goes.
pub fn run(hostile: &Hostile, say: &mut dyn FnMut(&str)) -> Result<Report> {
    let mixed = mixed::run(hostile, hostile.requests.div_ceil(2), say)?;
    let runs = runs::run(hostile, hostile.requests / 2, say)?;
    Ok(Report { seed: hostile.seed, requests: hostile.requests, mixed, runs })
}

impl Hostile {
    /// A server of `model` that does not wait long for anybody.
    fn serve(&self, model: PathBuf) -> MotleyServe {
        let more = ["--header-timeout", "2", "--write-timeout", "2"];
        MotleyServe {
            program: self.program.clone(),
            model,
            threads: 1,
            streams: 8,
            context: Context::Shared(4096),
            memory_bytes: None,
            exact: false,
            more: more.map(str::to_owned).to_vec(),
        }
    }
}
