//! `motley run`: what it takes.

use super::sampling::SamplingArgs;
use super::sandbox::SandboxArgs;
use super::wishes::LoadArgs;
use super::worker::WorkersArgs;
use crate::npu::NpuArgs;
use clap::{Args, ValueEnum};
use motley_plan::Outputs;
use motley_sched::speculate::MOST_GUESSES;
use std::path::PathBuf;

/// `motley run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// GGUF file (any part of a split one), or a name as `motley pull` takes
    pub(crate) model: PathBuf,
    /// What to ask; without it or -f, chat on a terminal, or ask what comes from a pipe
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Ask what this file says (- for stdin), after the text of -p if there is one
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Continue the text as it is, control tokens written in it included, without the model's
    /// chat template
    #[arg(long, conflicts_with_all = ["system", "no_think"])]
    pub(crate) raw: bool,
    /// Ask the model not to think first, or less, where its template can, and show one line for
    /// what it thinks all the same
    #[arg(long)]
    pub(crate) no_think: bool,
    /// Most tokens of an answer [default: to the end of the context]
    #[arg(short = 'n', long)]
    pub(crate) tokens: Option<usize>,
    /// Guess tokens by what followed the same ones before, compute them together with the last, and
    /// take wrong ones back: auto guesses as many as pay, and none with --exact or where a model's
    /// memory cannot take tokens back. Last bits may differ [default: off, auto with --draft]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub(crate) speculate: Option<SpeculateArg>,
    /// Guess tokens by a small model with the same vocabulary too, where the text has none: a GGUF
    /// file or a name, computed on the CPU and held in memory whole, before any expert
    #[arg(long, value_name = "FILE", conflicts_with_all = ["exact", "plan"])]
    pub(crate) draft: Option<PathBuf>,
    /// Write where the time went, and what was hit and read, as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) stats: Option<PathBuf>,
    /// Write what ran when (device, copies, CPU; disk) in Chrome's trace format, and what the
    /// simulator makes of the same routing beside it
    #[arg(long, value_name = "FILE.json")]
    pub(crate) timeline: Option<PathBuf>,
    /// Draw one layer of one decoded token, as it ran and as simulated
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) picture: Option<PathBuf>,
    /// Keep neither this run for `motley explain` nor what was typed
    #[arg(long)]
    pub(crate) no_record: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) workers: WorkersArgs,
    #[command(flatten)]
    pub(crate) npu: NpuArgs,
}

impl Run {
    /// Whether tokens are to be guessed ahead.
    pub(crate) fn speculate(&self) -> SpeculateArg {
        let unsaid = if self.draft.is_some() { SpeculateArg::Auto } else { SpeculateArg::Off };
        self.speculate.unwrap_or(unsaid)
    }

    /// Logits that memory is set aside for.
    pub(crate) fn outputs(&self) -> Outputs {
        match self.speculate() {
            SpeculateArg::Auto if !self.load.wishes.exact => Outputs::Ahead(MOST_GUESSES as u16),
            _ => Outputs::One,
        }
    }
}

/// Values of `--speculate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpeculateArg {
    /// As many tokens as pay
    Auto,
    /// One token at a time
    Off,
}
