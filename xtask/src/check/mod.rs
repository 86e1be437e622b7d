//! `cargo xtask check`: the checkers of threads, memory and properties, each as one command. Which there are
//! and what each can find is in docs/decisions/0082.
//!
//! In reading order:
//! * `checker`: the five of them, and what each runs.
//! * `report`: what their output says, in numbers.

mod checker;
mod report;

pub use checker::Checker;
pub use report::Report;

use crate::workspace_root;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs a checker to its end; `on_line` hears everything it says.
pub fn check(checker: Checker, on_line: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::of(checker);
    #[expect(clippy::disallowed_methods, reason = "a command says how long it took")]
    let begun = Instant::now();
    for mut command in checker.commands() {
        let ended_well = run(command.current_dir(workspace_root()), &mut |line| {
            report.hear(line);
            on_line(line);
        })?;
        report.ended(ended_well);
    }
    report.seconds = begun.elapsed().as_secs();
    Ok(report)
}

/// Runs a command, its two streams as one; whether it succeeded.
fn run(command: &mut Command, on_line: &mut dyn FnMut(&str)) -> Result<bool> {
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer).stdin(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    // The command holds the writing ends; the pipe ends with the child.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).split(b'\n') {
        on_line(&String::from_utf8_lossy(&line?));
    }
    Ok(child.wait()?.success())
}
