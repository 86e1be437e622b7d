//! `cargo xtask fuzz`: every fuzz target for a while, and what came of it. The targets are in `fuzz/`,
//! a workspace of their own; they are built with coverage instrumentation and without a sanitizer, so
//! the pinned stable toolchain will do.
//!
//! In reading order:
//! * `options`: what is run; the targets and their limits.
//! * `seeds`: what each corpus begins with; `models`: tiny model files among them.
//! * `build`: the targets' programs.
//! * `round`: one target for its time.
//! * `output`: what libFuzzer says, in numbers.
//! * `report`: all targets in numbers, and every crash with the command that replays it.

mod build;
mod models;
mod options;
mod output;
mod report;
mod round;
mod seeds;

pub use options::{Fuzz, TARGETS, Target};
pub use report::{Crash, Findings, Report, TargetReport};

use anyhow::{Result, ensure};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Mutex;

/// Writes seeds, builds and runs all targets asked for; `say` is told how it goes.
pub fn fuzz(fuzz: &Fuzz, say: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    ensure!(fuzz.motley.exists(), "{} is not there; build it first", fuzz.motley.display());
    seeds::write(&fuzz.targets)?;
    build::build(fuzz)?;
    let waiting = Mutex::new(fuzz.targets.iter());
    let done: Mutex<Vec<TargetReport>> = Mutex::default();
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let next = waiting.lock().expect("no job panics").next();
                let Some(target) = next else { return Ok(()) };
                say(&format!("{}: {} s", target.name, fuzz.seconds));
                let report = round::run(fuzz, target)?;
                say(&report.line());
                done.lock().expect("no job panics").push(report);
            }
        };
        let jobs: Vec<_> = (0..fuzz.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        jobs.into_iter().try_for_each(|job| job.join().expect("no job panics"))
    })
    .map_err(|error: anyhow::Error| error)?;
    Ok(Report::of(fuzz, done.into_inner().expect("no job panics")))
}

/// Runs one target on one input that failed.
pub fn replay(fuzz: &Fuzz, target: &Target, input: &Path) -> Result<ExitStatus> {
    build::build(fuzz)?;
    let mut command = Command::new(build::program(fuzz, target)?);
    Ok(round::prepared(&mut command, fuzz, target).arg(input).status()?)
}
