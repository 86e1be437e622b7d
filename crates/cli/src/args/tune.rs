//! What `motley tune` takes.

use super::wishes::{TrustArgs, Wishes};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `motley tune`.
#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// GGUF file (any part of a split one), or a name as `motley pull` takes
    pub(crate) model: PathBuf,
    /// What matters most
    #[arg(long, value_enum, default_value_t = TuneGoal::Energy)]
    pub(crate) goal: TuneGoal,
    /// Measure every choice of cores instead of a handful
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Show what was found and keep nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) wishes: Wishes,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

/// Values of `--goal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TuneGoal {
    /// Joules per token, at most 8 % slower than the fastest
    Energy,
    /// Tokens per second
    Speed,
}
