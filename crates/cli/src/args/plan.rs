//! What `motley plan` and `motley predict` take.

use super::approximate::Approximate;
use super::wishes::{TrustArgs, Wishes};
use super::worker::WorkersArgs;
use clap::{Args, ValueEnum};
use motley_plan::Goal;
use std::path::PathBuf;

/// `motley plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// GGUF file (any part of a split one); only its header is read
    pub(crate) model: PathBuf,
    /// Ready machine by name, or a .toml file (a wrong name lists the ready ones); `this` is
    /// the one Motley runs on, as measured, else as its system describes it
    #[arg(long, default_value = "this", value_name = "NAME|FILE")]
    pub(crate) machine: String,
    /// What matters most
    #[arg(long, value_enum, default_value_t = GoalArg::Speed)]
    pub(crate) goal: GoalArg,
    /// Routing profile of the model
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Tokens of the prompt for which speeds are predicted
    #[arg(long, default_value_t = 512, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) prompt: u32,
    #[command(flatten)]
    pub(crate) wishes: Wishes,
    #[command(flatten)]
    pub(crate) approximate: Approximate,
    /// Choose the strongest approximation that `motley eval --compare` measured to diverge by at
    /// most so much from the model as it is (KL, nats per token), e.g. 0.02
    #[arg(long, value_name = "KL", value_parser = accepted_kl, conflicts_with_all = ["experts", "skip_cold"],
          help_heading = "Approximations, off by default")]
    pub(crate) accept_kl: Option<f64>,
    #[command(flatten)]
    pub(crate) workers: WorkersArgs,
}

fn accepted_kl(text: &str) -> Result<f64, String> {
    let kl: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if kl.is_finite() && kl > 0.0 { Ok(kl) } else { Err("write a number above 0".to_owned()) }
}

/// `motley predict`.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// GGUF files
    #[arg(required = true)]
    pub(crate) models: Vec<PathBuf>,
    /// Ceilings for memory beside "everything in memory"
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = motley_plan::decide::parse::parse_size)]
    pub(crate) budgets: Vec<u64>,
    /// Prompt tokens per run
    #[arg(long, default_value_t = 512, value_name = "TOKENS")]
    pub(crate) prefill: usize,
    /// Decoded tokens per run
    #[arg(long, default_value_t = 64, value_name = "TOKENS")]
    pub(crate) decode: usize,
    /// Text whose beginning is the prompt (default: synthetic tokens)
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    /// Threads to compute with (default: as tuned, else every core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) threads: Option<u32>,
    /// How often every case runs, in turn; the middle one counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
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
