//! `motley check-file`: the child's side of a first look at a file. Does what a run does, without
//! the weights and within limits, and says on stdout how it went; an abort in llama.cpp ends this
//! process and no other.

use crate::check_file::{Answer, Job, Key, limit_self};
use crate::terminal::in_words;
use anyhow::{Context, Result, ensure};
use motley_engine::{Runtime, Seam, rehearse};
use motley_model::{ModelSpec, Sizes};

/// Most characters of a refusal: llama.cpp repeats texts of the file, and the parent keeps so much.
const MOST_CHARS: usize = 2000;

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let job: Job = serde_json::from_reader(std::io::stdin().lock()).context("check-file's job")?;
    let answer = match try_file(&job) {
        Ok(()) => Answer::Sound,
        Err(error) => Answer::Refused(in_words(&error).chars().take(MOST_CHARS).collect()),
    };
    println!("{}", serde_json::to_string(&answer)?);
    Ok(())
}

fn try_file(job: &Job) -> Result<()> {
    let opened = ModelSpec::open(&job.model)?;
    let found = Key::of(&opened.1)?.to_string();
    ensure!(found == job.key, "{} changed while it was read", job.model.display());
    limit_self(Sizes::of(&opened.0).total_bytes)?;
    Ok(rehearse(Runtime::start(Seam::Registered)?, opened)?)
}
