//! What the user may type. No side effects: commands turn this into what is done.
//! `run` holds what a conversation takes, `plan`, `explain` and `tune` hold what those commands take, `eval` what evaluation takes,
//! `serve` what the server takes, `sim` what the simulator takes, `trace` what traces take,
//! `calibrate` what this machine's commands take, `pages` what completions and the manual take,
//! `wishes` what a decision is made from.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

mod approximate;
mod bench;
mod calibrate;
mod env;
mod eval;
mod explain;
mod global;
mod habits;
mod pages;
mod plan;
mod pull;
mod run;
mod sampling;
mod sandbox;
mod serve;
mod sim;
mod time;
mod trace;
mod tune;
mod wishes;
mod worker;

pub(crate) use approximate::Approximate;
pub(crate) use bench::Bench;
pub(crate) use calibrate::{Calibrate, Doctor};
pub(crate) use env::Env;
pub(crate) use eval::Eval;
pub(crate) use explain::Explain;
pub(crate) use global::Global;
pub(crate) use habits::{Config, Install, Service};
pub(crate) use motley_plan::decide::parse::{parse_devices, parse_size};
pub(crate) use pages::{Completions, Man};
pub(crate) use plan::{Plan as PlanArgs, Predict};
pub(crate) use pull::{Pull, Rm, Show};
pub(crate) use run::{Run, SpeculateArg};
pub(crate) use sampling::SamplingArgs;
pub(crate) use sandbox::SandboxArg;
pub(crate) use serve::{SafetyArgs, Serve};
pub(crate) use sim::{EngineRuns, HostArgs, OutputArgs, Reproduce, Sim, SourceArg, SyntheticArgs};
pub(crate) use trace::{Import, Record, TraceCommand, TraceSummary, WasteArgs};
pub(crate) use tune::{Tune, TuneGoal};
pub(crate) use wishes::{LoadArgs, LoadingArg, TrustArgs};
pub(crate) use worker::{KnownWorkers, Worker, WorkersArgs};

const AFTER_HELP: &str =
    "Every flag can also be set as a variable (MOTLEY_MEMORY=12G) or in a file: `motley config`.";

/// Runs mixture-of-experts models larger than your GPU on the machine you have.
#[derive(Debug, Parser)]
#[command(name = "motley", version, long_version = crate::version::long(),
          max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Motley {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer a question, or chat when none is given
    Run(Box<Run>),
    /// Serve an OpenAI-compatible API and a page to chat on
    Serve(Box<Serve>),
    /// Download a model, after saying how it would run here
    Pull(Pull),
    /// Show what is downloaded
    List,
    /// Remove what was downloaded
    Rm(Rm),
    /// Show what a model is made of and where it lies, downloaded or not
    Show(Show),
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
    /// Show what is set besides the command line, and where
    Config(Config),
    /// Print what to put before a command, so that its own llama.cpp runs larger models
    Env(Env),
    /// Compute experts for other machines: `motley run --workers` there sends rows here
    Worker(Worker),
    /// Show the workers this machine has met, whether they answer and what they have done
    Workers(KnownWorkers),
    /// Serve a model in the background, also after a restart
    #[command(subcommand)]
    Service(Service),
    /// Print what a report of a defect needs, without private text
    Bug,
    /// Write completions of commands and flags for a shell
    Completions(Completions),
    /// Write the manual, a page per command
    Man(Man),
    /// Measure one engine as a job on stdin says (used by `bench` and by tests)
    #[command(hide = true)]
    MeasureJob,
    /// Try a file as a job on stdin says (used before a file is loaded for the first time)
    #[command(hide = true)]
    CheckFile,
    /// Load the ggml of a host with its backends (used by `env`)
    #[command(hide = true)]
    CheckHost {
        /// Its library.
        ggml: PathBuf,
    },
    /// Print the OpenAPI document of `serve`, for those who make clients or documents of it
    #[command(hide = true)]
    Openapi,
}

/// `motley inspect`.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// GGUF file (any part of a split one), or a name as `motley pull` takes
    pub(crate) model: PathBuf,
    /// KV cache length the memory figures are for, in tokens
    #[arg(long, default_value_t = 4096)]
    pub(crate) context: u32,
}
