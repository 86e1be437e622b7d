//! Files not seen before are tried by a child process first: llama.cpp ends the whole process on
//! some headers, and an end there is a message here. What passed is remembered by its content.
//!
//! ```text
//! header read ──> key ──> kept verdict? ── yes ──────────────────────────────┐
//!                              │ no                                          ▼
//!                              └──> child: loads, tokenizes, computes ──> loading begins
//!                                        └── ended by a signal: message, exit code 1
//! ```
//!
//! * `key`: what a verdict is about.
//! * `verdict`: those that are kept.
//! * `limits`: what the child may take.
//! * `child`: the parent's side; `commands::check_file` is the child's.

mod child;
mod key;
mod limits;
mod verdict;

pub(crate) use child::{Answer, Job};
pub(crate) use key::Key;
pub(crate) use limits::limit_self;

use crate::args::Global;
use crate::terminal::note;
use anyhow::{Result, bail};
use child::Outcome;
use motley_model::{ModelFiles, ModelSpec, Sizes};

/// Has a child try the files, unless it has before.
pub(crate) fn check(global: &Global, spec: &ModelSpec, files: &ModelFiles) -> Result<()> {
    let key = Key::of(files)?;
    if verdict::is_kept(&key) {
        return Ok(());
    }
    let path = &files.paths[0];
    let job = Job { model: path.clone(), key: key.to_string() };
    let say = || {
        if !global.json {
            note(&format!("{} is new here: trying it in a process of its own", path.display()));
        }
    };
    match child::run(&job, limits::deadline(Sizes::of(spec).total_bytes), say)? {
        Outcome::Sound => verdict::keep(&key, path),
        Outcome::Refused(words) => bail!("{words}"),
        Outcome::Failed(words) => bail!(
            "{} makes the engine fail: {words} (seen in a process of its own; --trust-file loads \
             it all the same)",
            path.display()
        ),
    }
    Ok(())
}
