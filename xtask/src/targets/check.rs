//! One check of one target.

#![allow(clippy::disallowed_methods, reason = "it says how long checks took")]

use super::report::CheckReport;
use super::systems::{Check, Target};
use super::tools::Tools;
use anyhow::{Context, Result};
use std::time::Instant;

/// Lines of an error that are kept.
const KEPT_LINES: usize = 40;

/// Checks the crates, all of them however many fail.
pub(super) fn run(tools: &Tools, target: &Target, what: &Check) -> Result<CheckReport> {
    let mut command = tools.cargo("check", target.triple)?;
    command.arg("--keep-going");
    for name in what.crates {
        command.args(["--package", name]);
    }
    let start = Instant::now();
    let ended = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    // The last one of a crate is their number.
    let is_warning = |line: &&str| line.starts_with("warning: ") && !line.contains(" generated ");
    let warnings = said.lines().filter(is_warning).count();
    let errors = said.lines().skip_while(|line| !line.starts_with("error")).take(KEPT_LINES);
    Ok(CheckReport {
        name: what.name.into(),
        good: ended.status.success(),
        warnings,
        seconds: start.elapsed().as_secs_f64(),
        errors: errors.map(str::to_owned).collect(),
    })
}
