//! `cargo xtask capped`: several ways of running one model, in turn, each in a process of its
//! own under a memory limit and with a cold page cache. What claims about models larger than
//! memory rest on. Needs Linux and the right to make control groups.
//!
//! * `cage`: the control group of one run.
//! * `way`: what is run.
//! * `tally`: many runs as a table.
//! * `sweep`: a run without flags against hand-picked ones.
//! * `soak`: one long run beside a neighbour that takes memory.
//! * `serving`: a server under load for long.

mod cage;
mod serving;
mod soak;
mod sweep;
mod tally;
mod way;

pub use serving::{ServeSoak, ServeSoaked, serve_soak};
pub use soak::{Soak, Soaked, soak, take_memory};
pub use sweep::{Sweep, sweep};
pub use tally::table;
pub use way::Way;

use anyhow::{Context, Result, bail};
use cage::Cage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What to compare.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The program.
    pub motley: PathBuf,
    /// The model.
    pub model: PathBuf,
    /// Limits, each a group of runs.
    pub budgets_bytes: Vec<u64>,
    /// What is compared; ratios are against the first.
    pub ways: Vec<Way>,
    /// How often each way runs under each budget, on another prompt every time.
    pub rounds: usize,
    /// Prompts as text.
    pub prompts: Vec<String>,
    /// Prompt tokens.
    pub prefill: usize,
    /// Decoded tokens.
    pub decode: usize,
    /// Threads.
    pub threads: u32,
    /// Whether the limit is also enforced; else only Motley is told of it, and the high-water
    /// mark shows whether it kept to it.
    pub enforced: bool,
}

/// One run: where, what came of it, and how busy the machine was before.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// The limit.
    pub budget_bytes: u64,
    /// Name of the way.
    pub way: String,
    /// Round, and number of the prompt.
    pub round: usize,
    /// Highest memory of the group, page cache too.
    pub peak_bytes: u64,
    /// How the process ended when it was not well (a signal, an exit code).
    pub failed: Option<String>,
    /// Load average of the last minute when it began.
    pub load: String,
    /// What the worker said.
    pub outcome: Value,
}

/// Runs everything, interleaved: all ways of a round before the next round. Every run is
/// written to `log` as a line when it ends.
pub fn run(comparison: &Comparison, log: &Path) -> Result<Vec<Run>> {
    let mut file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut runs = Vec::new();
    for round in 0..comparison.rounds {
        for &budget in &comparison.budgets_bytes {
            for way in &comparison.ways {
                let run = run_once(comparison, way, budget, round)?;
                writeln!(file, "{}", serde_json::to_string(&run)?)?;
                eprintln!("{}", tally::line(&run));
                runs.push(run);
            }
        }
    }
    Ok(runs)
}

fn run_once(comparison: &Comparison, way: &Way, budget_bytes: u64, round: usize) -> Result<Run> {
    let prompt = &comparison.prompts[round % comparison.prompts.len()];
    let job = way.job(comparison, budget_bytes, prompt);
    let cage = Cage::new(comparison.enforced.then_some(budget_bytes))?;
    drop_page_cache()?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let output = worker(cage.command(&comparison.motley), &job)?;
    let outcome = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    Ok(Run {
        budget_bytes,
        way: way.name.clone(),
        round,
        peak_bytes: cage.peak_bytes()?,
        failed: (!output.status.success()).then(|| output.status.to_string()),
        load: load.split(' ').next().unwrap_or_default().to_owned(),
        outcome,
    })
}

/// `motley worker` with its job; ends when it does.
fn worker(mut command: Command, job: &Value) -> Result<Output> {
    let mut child = command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().context("piped")?.write_all(job.to_string().as_bytes())?;
    Ok(child.wait_with_output()?)
}

/// Everything that can be is forgotten, so that every run begins cold.
fn drop_page_cache() -> Result<()> {
    let synced = Command::new("sync").status()?.success();
    if !synced {
        bail!("sync failed");
    }
    let path = "/proc/sys/vm/drop_caches";
    std::fs::write(path, "3").with_context(|| format!("cannot write {path}; are you root?"))
}
