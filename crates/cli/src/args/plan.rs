//! What `motley plan` takes.

use clap::{Args, ValueEnum};
use motley_plan::Goal;
use std::path::PathBuf;

/// `motley plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// GGUF file (any part of a split one); only its header is read
    pub(crate) model: PathBuf,
    /// Ready machine by name, or a .toml file (a wrong name lists the ready ones)
    #[arg(long, default_value = "this", value_name = "NAME|FILE")]
    pub(crate) machine: String,
    /// What matters most
    #[arg(long, value_enum, default_value_t = GoalArg::Speed)]
    pub(crate) goal: GoalArg,
    /// Routing profile of the model
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// KV cache length in tokens
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) context: u32,
    /// Prefill chunk in tokens (default: what should be fastest)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) chunk: Option<u32>,
    /// Tokens of the prompt for which speeds are predicted
    #[arg(long, default_value_t = 512, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) prompt: u32,
}

/// Values of `--goal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoalArg {
    /// Tokens per second
    Speed,
    /// Joules per token, at most 8 % slower
    Energy,
    /// Bytes, at most 10 % slower
    Memory,
}

impl From<GoalArg> for Goal {
    fn from(goal: GoalArg) -> Self {
        match goal {
            GoalArg::Speed => Self::Speed,
            GoalArg::Energy => Self::Energy,
            GoalArg::Memory => Self::Memory,
        }
    }
}
