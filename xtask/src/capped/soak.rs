//! A long run at the smallest budget while a neighbour in the same control group takes memory
//! and gives it back: the budget must hold, nobody be killed, and the tokens stay right.

use super::cage::Cage;
use super::way::base_job;
use super::worker::worker;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// What to soak.
#[derive(Debug, Clone)]
pub struct Soak {
    /// The program.
    pub motley: PathBuf,
    /// The model.
    pub model: PathBuf,
    /// Budget given to Motley.
    pub budget_bytes: u64,
    /// Limit of the group that holds Motley and its neighbour.
    pub limit_bytes: u64,
    /// Most the neighbour takes.
    pub neighbour_bytes: u64,
    /// How long.
    pub minutes: f64,
    /// Threads.
    pub threads: u32,
    /// Prompt.
    pub prompt: String,
}

/// What came of it.
#[derive(Debug)]
pub struct Soaked {
    /// Answers given, all alike and as the bare engine gives them.
    pub answers: usize,
    /// Tokens decoded.
    pub tokens: u64,
    /// Highest memory of the process itself, as the system counts it.
    pub own_peak_bytes: u64,
    /// Highest memory of the group.
    pub group_peak_bytes: u64,
    /// Processes of the group the system killed.
    pub killed: u64,
    /// Fewest experts that could stay while memory was scarce, and the most.
    pub slots: (u64, u64),
}

/// Pieces of the file the neighbour reads: half a gigabyte.
const READ_STEPS: u64 = 32;

/// Tokens of each answer.
const DECODE: usize = 48;

/// Runs it. The bare engine answers first, without a limit.
pub fn soak(soak: &Soak) -> Result<Soaked> {
    let expected = answer(Command::new(&soak.motley), &job(soak, true))?;
    let cage = Cage::new(Some(soak.limit_bytes))?;
    let mut neighbour = neighbour(&cage, soak)?;
    let outcome = answer(cage.command(&soak.motley), &job(soak, false));
    neighbour.kill()?;
    neighbour.wait()?;
    let outcome = outcome?;
    ensure!(
        outcome["tokens"] == expected["tokens"],
        "other tokens than the bare engine: {} and {}",
        outcome["tokens"],
        expected["tokens"]
    );
    let stream = &outcome["stream"];
    Ok(Soaked {
        answers: outcome["decode_s"].as_array().map_or(0, Vec::len),
        tokens: outcome["record"]["decode"]["tokens"].as_u64().unwrap_or(0),
        own_peak_bytes: outcome["peak_bytes"].as_u64().unwrap_or(0),
        group_peak_bytes: cage.peak_bytes()?,
        killed: cage.killed(),
        slots: (
            stream["slots_least"].as_u64().unwrap_or(0),
            stream["slots_most"].as_u64().unwrap_or(0),
        ),
    })
}

fn job(soak: &Soak, bare: bool) -> Value {
    let mut job = base_job(&soak.model, bare, soak.threads);
    job["text"] = json!(soak.prompt);
    job["prefill"] = json!(64);
    job["decode"] = json!(DECODE);
    if !bare {
        job["memory"] = json!(soak.budget_bytes);
        job["seconds"] = json!(60.0 * soak.minutes);
    }
    job
}

fn answer(command: Command, job: &Value) -> Result<Value> {
    let output = worker(command, job)?;
    ensure!(output.status.success(), "the worker ended with {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// This program again, as a process that only takes memory.
fn neighbour(cage: &Cage, soak: &Soak) -> Result<Child> {
    let program = std::env::current_exe()?;
    let mut command = cage.command(Path::new(&program));
    command.arg("take-memory").arg(soak.neighbour_bytes.to_string()).arg(&soak.model);
    Ok(command.spawn()?)
}

/// Takes up to `bytes` and gives them back, in waves of a minute, until killed; and reads the
/// beginning of `file` over and over through the page cache, as a program at work would.
#[expect(clippy::disallowed_methods, reason = "waves last so many seconds")]
pub fn take_memory(bytes: u64, file: &Path) -> Result<()> {
    const STEP: usize = 16 << 20;
    let file = File::open(file)?;
    let mut part = vec![0; STEP];
    loop {
        let mut held: Vec<Vec<u8>> = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(40) {
            if ((held.len() + 1) * STEP) as u64 <= bytes {
                held.push(vec![1; STEP]);
            }
            // Touching keeps it from being swapped or forgotten.
            held.iter_mut()
                .for_each(|part| part.iter_mut().step_by(4096).for_each(|byte| *byte += 1));
            for at in 0..READ_STEPS {
                file.read_at(&mut part, at * STEP as u64)?;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(held);
        std::thread::sleep(Duration::from_secs(20));
    }
}
