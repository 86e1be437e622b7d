//! Options of `cargo xtask mutate`.

use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use xtask::mutate::{LoadingPath, Mutations};

/// `cargo xtask mutate`.
#[derive(Debug, Args)]
pub(crate) struct MutateArguments {
    /// Mutations to try
    #[arg(long, default_value_t = 160)]
    count: usize,
    /// Number of the first one; each follows from the seed and its number alone
    #[arg(long, default_value_t = 0)]
    from: usize,
    /// Seed of all of them
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How weights come into memory: mapped, on-demand or both
    #[arg(long, default_value = "both", value_parser = ["mapped", "on-demand", "both"])]
    path: String,
    /// Trials at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// A flag for `motley run` beside the trial's own
    #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// The program (default: beside this one)
    #[arg(long)]
    motley: Option<PathBuf>,
    /// File for the report
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

impl MutateArguments {
    /// What is asked for.
    pub(crate) fn mutations(&self) -> Result<Mutations> {
        let beside = std::env::current_exe()?.with_file_name("motley");
        Ok(Mutations {
            motley: self.motley.clone().unwrap_or(beside),
            numbers: self.from..self.from + self.count,
            seed: self.seed,
            paths: match self.path.as_str() {
                "mapped" => vec![LoadingPath::Mapped],
                "on-demand" => vec![LoadingPath::OnDemand],
                _ => vec![LoadingPath::Mapped, LoadingPath::OnDemand],
            },
            jobs: self.jobs,
            flags: self.flags.clone(),
        })
    }
}
