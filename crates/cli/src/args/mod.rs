//! What the user may type. No side effects: commands turn this into what is done.
//! `plan`, `explain` and `tune` hold what those commands take, `eval` what evaluation takes,
//! `serve` what the server takes, `sim` what the simulator takes, `trace` what traces take,
//! `calibrate` what this machine's commands take, `wishes` what a decision is made from.

use crate::npu::PairsArgs;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

mod calibrate;
mod eval;
mod explain;
mod plan;
mod serve;
mod sim;
mod trace;
mod tune;
mod wishes;

pub(crate) use calibrate::{Calibrate, Doctor};
pub(crate) use eval::Eval;
pub(crate) use explain::Explain;
pub(crate) use plan::{Plan as PlanArgs, Predict};
pub(crate) use serve::Serve;
pub(crate) use sim::{EngineRuns, OutputArgs, Reproduce, Sim, SourceArg, SyntheticArgs};
pub(crate) use trace::{Import, Record, ToldArgs, TraceCommand, TraceSummary};
pub(crate) use tune::{Tune, TuneGoal};
pub(crate) use wishes::{LoadArgs, LoadingArg, Wishes, parse_devices};

/// Runs mixture-of-experts models larger than your GPU on the machine you have.
#[derive(Debug, Parser)]
#[command(name = "motley", version, max_term_width = 100)]
pub(crate) struct Motley {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more on stderr (-vv: llama.cpp's log too)
    #[arg(short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate text, or chat when no prompt is given
    Run(Run),
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
    /// Measure one engine as told on stdin (used by `bench` and by tests)
    #[command(hide = true)]
    Worker,
}

/// `motley run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// GGUF file (any part of a split one)
    pub(crate) model: PathBuf,
    /// Text to continue; without it, chat with the model's own template
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
    pub(crate) sampling: SamplingArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

/// How tokens are chosen.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// 0 takes the most likely token every time
    #[arg(long, default_value_t = 0.0)]
    pub(crate) temperature: f32,
    /// Keep the K most likely tokens (0: all)
    #[arg(long, default_value_t = 40, value_name = "K")]
    pub(crate) top_k: u32,
    /// Keep the smallest set of tokens that reaches probability P
    #[arg(long, default_value_t = 0.95, value_name = "P")]
    pub(crate) top_p: f32,
    /// Keep tokens at least P times as likely as the best
    #[arg(long, default_value_t = 0.05, value_name = "P")]
    pub(crate) min_p: f32,
    /// Make tokens of the last 64 less likely (1: no)
    #[arg(long, default_value_t = 1.0, value_name = "X")]
    pub(crate) repeat_penalty: f32,
    /// Seed for sampling
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u32,
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

/// `motley bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// GGUF file (any part of a split one)
    pub(crate) model: PathBuf,
    /// Pairs of runs, bare engine and Motley
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pairs: u32,
    /// Prompt tokens per run
    #[arg(long, default_value_t = 512, value_name = "TOKENS")]
    pub(crate) prefill: usize,
    /// Decoded tokens per run
    #[arg(long, default_value_t = 64, value_name = "TOKENS")]
    pub(crate) decode: usize,
    /// Measurements inside one run; the best counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
    /// Measure decode beside N niced busy programs instead, with and without yielding cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) neighbours: Option<u32>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) device: PairsArgs,
}

/// `4G`, `512M`, `1.5GiB`, or bytes; units are powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(format!("unknown unit `{unit}`; write 512M or 4G")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a size; write 4G"))?;
    Ok((number * (1_u64 << shift) as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("4G"), Ok(4 << 30));
        assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_size("512m"), Ok(512 << 20));
        assert_eq!(parse_size("1000"), Ok(1000));
        assert!(parse_size("four").is_err());
        assert!(parse_size("4X").is_err());
    }
}
