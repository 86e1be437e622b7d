//! Tests of one target, built for it and run by an emulator.

#![allow(clippy::disallowed_methods, reason = "it says how long checks took")]

use super::report::TestReport;
use super::systems::{Runner, Target};
use super::tools::Tools;
use anyhow::{Context, Result};
use std::time::Instant;

/// Lines of a failure that are kept.
const KEPT_LINES: usize = 60;

/// Builds and runs them.
pub(super) fn run(tools: &Tools, target: &Target, runner: &Runner) -> Result<TestReport> {
    let mut command = runner.emulator.cargo_test(tools, target.triple)?;
    for name in runner.crates {
        command.args(["--package", name]);
    }
    command.env("CARGO_TARGET_DIR", tools.folder("emulated"));
    command.args(["--no-fail-fast", "--lib", "--tests", "--"]);
    for (test, _) in runner.passed_over {
        command.args(["--skip", test]);
    }
    let start = Instant::now();
    let ended = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&ended.stdout);
    let sum = |word: &str| said.lines().filter_map(|line| counted(line, word)).sum();
    let words = String::from_utf8_lossy(&ended.stderr);
    let failures = said.lines().skip_while(|line| !line.starts_with("failures:"));
    let errors = words.lines().skip_while(|line| !line.starts_with("error"));
    let passed_over = runner.passed_over.iter();
    Ok(TestReport {
        runner: runner.emulator.program().into(),
        crates: runner.crates.iter().map(|name| (*name).to_owned()).collect(),
        good: ended.status.success(),
        passed: sum("passed"),
        failed: sum("failed"),
        passed_over: passed_over.map(|(test, why)| format!("{test}: {why}")).collect(),
        seconds: start.elapsed().as_secs_f64(),
        failures: failures.chain(errors).take(KEPT_LINES).map(str::to_owned).collect(),
    })
}

/// `12`, of `test result: ok. 12 passed; 0 failed; …` and `passed`.
fn counted(line: &str, word: &str) -> Option<u64> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let of = |part: &str| part.trim().strip_suffix(word)?.trim().parse().ok();
    counts.split(';').find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_result() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 1 filtered out";
        assert_eq!((counted(line, "passed"), counted(line, "failed")), (Some(12), Some(3)));
        assert_eq!(counted("12 passed; 3 failed", "passed"), None);
    }
}
