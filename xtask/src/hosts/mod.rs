//! `cargo xtask hosts`: a head and its workers as machines of their own, in network namespaces with
//! cables of a given rate and control groups of a given memory. Needs Linux, root, `ip` and `tc`.
//!
//! * `net`: a namespace and its cable.
//! * `party`: workers on such hosts, the head on this one, paired.
//! * `equal`: logits bit for bit those of one process, for every architecture and division.
//! * `cable`: bytes and time of exchanges beside what the formula says.
//! * `faults`: workers killed, stopped, cut off and slowed down under streams.
//! * `beyond`: a model larger than one host's memory, from disk and with a second host.
//! * `rpc`: the same beside llama.cpp's RPC.

mod beyond;
mod cable;
mod equal;
mod faults;
mod net;
mod party;
mod rpc;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Logits with workers are those of one process
    Equal,
    /// Bytes and time of exchanges
    Cable,
    /// Answers while workers fail
    Faults,
    /// A model beyond one host's memory
    Beyond,
    /// The same beside llama.cpp's RPC; needs `--llama`
    Rpc,
}

/// Options.
#[derive(Debug, Args)]
pub struct Hosts {
    /// What to try
    #[arg(value_enum)]
    part: Part,
    /// Faults of each kind; runs of each way
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Model for `cable`, `beyond` and `rpc` (default: the synthetic one of 8.5 GB)
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Folder of llama.cpp's `llama-bench` and `ggml-rpc-server`, built with `GGML_RPC=ON` and
    /// `GGML_CPU_REPACK=OFF`
    #[arg(long, value_name = "FOLDER", required_if_eq("part", "rpc"))]
    llama: Option<PathBuf>,
    /// The `motley` to run (default: the one built beside this program)
    #[arg(long, value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Where figures are written
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs one part.
pub fn run(asked: &Hosts, on_line: &mut dyn FnMut(&str)) -> Result<()> {
    let program = crate::servers::motley_program(asked.program.as_deref())?;
    match asked.part {
        Part::Equal => keep(asked, &equal::run(&program, on_line)?),
        Part::Cable => keep(asked, &cable::run(&program, &model(asked)?, asked.rounds, on_line)?),
        Part::Faults => keep(asked, &faults::run(&program, asked.rounds, on_line)?),
        Part::Beyond => keep(asked, &beyond::run(&program, &model(asked)?, asked.rounds, on_line)?),
        Part::Rpc => {
            let folder = asked.llama.as_deref().context("--llama says where llama.cpp is")?;
            keep(asked, &rpc::run((&program, folder), &model(asked)?, asked.rounds, on_line)?)
        }
    }
}

fn model(asked: &Hosts) -> Result<PathBuf> {
    use motley_testkit::synth::{Preset, Request, ensure_cached};
    match &asked.model {
        Some(model) => Ok(model.clone()),
        None => Ok(ensure_cached(&Request::of_preset(Preset::Qwen3moe8g))?),
    }
}

fn keep(asked: &Hosts, figures: &impl Serialize) -> Result<()> {
    let Some(path) = &asked.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(figures)? + "\n";
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
