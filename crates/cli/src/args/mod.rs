//! What the user may type. No side effects: commands turn this into what is done.
//! `plan`, `explain` and `tune` hold what those commands take, `eval` what evaluation takes,
//! `serve` what the server takes, `sim` what the simulator takes, `trace` what traces take,
//! `calibrate` what this machine's commands take, `pages` what completions and the manual take,
//! `wishes` what a decision is made from.

use crate::npu::NpuArgs;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

mod bench;
mod calibrate;
mod eval;
mod explain;
mod global;
mod pages;
mod plan;
mod sampling;
mod sandbox;
mod serve;
mod sim;
mod size;
mod trace;
mod tune;
mod wishes;

pub(crate) use bench::Bench;
pub(crate) use calibrate::{Calibrate, Doctor};
pub(crate) use eval::Eval;
pub(crate) use explain::Explain;
pub(crate) use global::Global;
pub(crate) use pages::{Completions, Man};
pub(crate) use plan::{Plan as PlanArgs, Predict};
pub(crate) use sampling::SamplingArgs;
pub(crate) use sandbox::{SandboxArg, SandboxArgs};
pub(crate) use serve::{SafetyArgs, Serve};
pub(crate) use sim::{EngineRuns, OutputArgs, Reproduce, Sim, SourceArg, SyntheticArgs};
pub(crate) use size::parse_size;
pub(crate) use trace::{Import, Record, TraceCommand, TraceSummary, WasteArgs};
pub(crate) use tune::{Tune, TuneGoal};
pub(crate) use wishes::{LoadArgs, LoadingArg, TrustArgs, parse_devices};

/// Runs mixture-of-experts models larger than your GPU on the machine you have.
#[derive(Debug, Parser)]
#[command(name = "motley", version, long_version = crate::version::long(), max_term_width = 100)]
pub(crate) struct Motley {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate text, or chat when no prompt is given
    Run(Box<Run>),
    /// Serve an OpenAI-compatible API and a page to chat on
    Serve(Box<Serve>),
    /// Show what a model is made of
    Inspect(Inspect),
    /// Show what would go where, and how fast that should be
    Plan(PlanArgs),
    /// Put the speeds a plan expects beside measured ones
    Predict(Predict),
    /// Find which cores decode best, and keep that for `run`
    Tune(Tune),
    /// Show where the time of a run went, and what would have made it faster
    Explain(Explain),
    /// Show what this machine has, what is used of it and what is missing
    Doctor(Doctor),
    /// Measure this machine, or record how a model routes
    Calibrate(Box<Calibrate>),
    /// Measure against the bare engine, in interleaved pairs
    Bench(Box<Bench>),
    /// Perplexity and multiple choice, with intervals; compares settings in pairs
    Eval(Box<Eval>),
    /// Simulate a model on a machine you need not have
    Sim(Box<Sim>),
    /// Put published results beside what our scheduler gives
    Reproduce(Box<Reproduce>),
    /// Record, convert and describe routing
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Write completions of commands and flags for a shell
    Completions(Completions),
    /// Write the manual, a page per command
    Man(Man),
    /// Measure one engine as a job on stdin says (used by `bench` and by tests)
    #[command(hide = true)]
    Worker,
    /// Try a file as a job on stdin says (used before a file is loaded for the first time)
    #[command(hide = true)]
    CheckFile,
}

/// `motley run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// GGUF file (any part of a split one)
    pub(crate) model: PathBuf,
    /// Text to continue, control tokens written in it included; without it, chat with the
    /// model's own template, which alone writes them
    #[arg(short, long)]
    pub(crate) prompt: Option<String>,
    /// Most tokens to generate (per answer, in chat)
    #[arg(short = 'n', long, default_value_t = 256)]
    pub(crate) tokens: usize,
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
    /// Do not keep this run for `motley explain`
    #[arg(long)]
    pub(crate) no_record: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) npu: NpuArgs,
}

/// `motley inspect`.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// GGUF file (any part of a split one)
    pub(crate) model: PathBuf,
    /// KV cache length the memory figures are for, in tokens
    #[arg(long, default_value_t = 4096)]
    pub(crate) context: u32,
}
