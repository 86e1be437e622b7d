//! Options of `hostile`.

use anyhow::{Context, Result, ensure};
use clap::Args;
use motley_testkit::fixtures;
use motley_testkit::hostile::names;
use motley_testkit::synth::Arch;
use std::path::PathBuf;
use xtask::hostile::Hostile;
use xtask::servers::motley_program;

/// Options of `hostile`.
#[derive(Debug, Args)]
pub(crate) struct HostileArguments {
    /// Hostile requests: half mixed beside an honest client, half as long runs of one class of
    /// characters under each of llama.cpp's pre-tokenizers
    #[arg(long, default_value_t = 10_000)]
    requests: usize,
    /// Attackers at the same time
    #[arg(long, default_value_t = 4)]
    attackers: usize,
    /// Seed of the attacks
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// An attack to leave out, by name
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// Model with a byte-pair tokenizer [default: a small synthetic one]
    #[arg(long, value_name = "GGUF")]
    gguf: Option<PathBuf>,
    /// The program [default: the one built beside this]
    #[arg(long, value_name = "FILE")]
    motley: Option<PathBuf>,
    /// File to write the result to, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl HostileArguments {
    /// What to do.
    pub(crate) fn hostile(&self) -> Result<Hostile> {
        for name in &self.without {
            let known: Vec<&str> = names().collect();
            ensure!(known.contains(&name.as_str()), "no attack is called {name}: {known:?}");
        }
        let small = || fixtures::synthetic(Arch::Qwen3moe);
        Ok(Hostile {
            program: motley_program(self.motley.as_deref())?,
            model: self.gguf.clone().or_else(small).context("run `cargo xtask smollm2` first")?,
            requests: self.requests,
            attackers: self.attackers.max(1),
            seed: self.seed,
            without: self.without.clone(),
        })
    }
}
