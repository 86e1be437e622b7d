//! Options of `cargo xtask fuzz`.

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use xtask::fuzz::{Fuzz, TARGETS, Target};

/// `cargo xtask fuzz`.
#[derive(Debug, Args)]
pub(crate) struct FuzzArguments {
    /// How long each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// One target (default: all)
    #[arg(long, value_parser = PossibleValuesParser::new(TARGETS.map(|target| target.name)))]
    target: Option<String>,
    /// Only targets built without llama.cpp and the server: those of files, hubs and workers
    #[arg(long, conflicts_with = "target")]
    without_engine: bool,
    /// An input of that target to run once
    #[arg(long, requires = "target")]
    pub(crate) replay: Option<PathBuf>,
    /// Targets at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The program that `loader` gives files to (default: beside this one)
    #[arg(long)]
    motley: Option<PathBuf>,
    /// File for the report
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

impl FuzzArguments {
    /// What is asked for.
    pub(crate) fn fuzz(&self) -> Result<Fuzz> {
        let program = std::env::current_exe()?;
        let beside = program.with_file_name("motley");
        let target_folder = program.parent().and_then(|folder| folder.parent());
        let build_folder = target_folder.context("a folder this was built in")?.join("fuzz");
        let targets = match &self.target {
            Some(name) => vec![Target::named(name).context("a target")?],
            None => TARGETS
                .iter()
                .filter(|target| !(self.without_engine && target.needs_engine()))
                .collect(),
        };
        let motley = self.motley.clone().unwrap_or(beside);
        Ok(Fuzz { targets, seconds: self.seconds, jobs: self.jobs, motley, build_folder })
    }
}
