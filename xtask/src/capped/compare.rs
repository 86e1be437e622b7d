//! All ways under all limits, in turn, every run in a control group of its own.

use super::cage::Cage;
use super::tally::{self, CappedRun};
use super::way::{Way, base_job};
use super::worker::{drop_page_cache, worker};
use anyhow::{Context, Result};
use motley_host::load;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

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
    /// Whether the limit is also enforced; otherwise Motley alone knows it, and the high-water
    /// mark shows whether it kept to it.
    pub enforced: bool,
}

/// Runs everything, interleaved: all ways of a round before the next round. Every run is
/// written to `log` as a line when it ends.
pub fn run(comparison: &Comparison, log: &Path) -> Result<Vec<CappedRun>> {
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

fn run_once(
    comparison: &Comparison,
    way: &Way,
    budget_bytes: u64,
    round: usize,
) -> Result<CappedRun> {
    let prompt = &comparison.prompts[round % comparison.prompts.len()];
    let job = job(comparison, way, budget_bytes, prompt);
    let cage = Cage::new(comparison.enforced.then_some(budget_bytes))?;
    drop_page_cache()?;
    let load = load::average(Path::new("/")).map_or(0.0, |load| load.one_min);
    let program = way.program.as_ref().unwrap_or(&comparison.motley);
    let output = worker(cage.command(program), &job)?;
    let outcome = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    Ok(CappedRun {
        budget_bytes,
        way: way.name.clone(),
        round,
        peak_bytes: cage.peak_bytes()?,
        failed: (!output.status.success()).then(|| output.status.to_string()),
        load: format!("{load:.2}"),
        outcome,
    })
}

/// The worker's job; both engines keep weights in the file's own order.
fn job(comparison: &Comparison, way: &Way, budget_bytes: u64, text: &str) -> Value {
    let mut job = base_job(&comparison.model, way.bare, comparison.threads);
    job["memory"] = json!((!way.bare).then_some(budget_bytes));
    job["context"] = json!((comparison.prefill + comparison.decode + 1).next_multiple_of(256));
    job["text"] = json!(text);
    job["prefill"] = json!(comparison.prefill);
    job["decode"] = json!(comparison.decode);
    if let Value::Object(job) = &mut job {
        job.extend(way.settings.clone());
    }
    job
}
