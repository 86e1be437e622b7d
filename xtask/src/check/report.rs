//! What a checker's output says, in numbers. Reads libtest's, loom's, Miri's and the sanitizers'
//! own lines; starts nothing.

use super::checker::Checker;
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What begins a finding.
const FINDINGS: &[&str] = &[
    "error: Undefined Behavior",
    "ERROR: AddressSanitizer",
    "ERROR: LeakSanitizer",
    "WARNING: ThreadSanitizer",
    "panicked at",
];

/// One run of a checker.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The command that runs it again.
    pub command: String,
    /// Tests that passed; under Miri each counts once per seed.
    pub passed: u64,
    pub failed: u64,
    /// Orders of threads, by scenario.
    pub schedules: BTreeMap<String, u64>,
    /// First lines of what was found.
    pub findings: Vec<String>,
    /// Whether every command of it ended well.
    pub ended_well: bool,
    pub seconds: u64,
}

impl Report {
    pub(super) fn of(checker: Checker) -> Self {
        Self {
            command: format!("cargo xtask check {}", checker.name()),
            passed: 0,
            failed: 0,
            schedules: BTreeMap::new(),
            findings: Vec::new(),
            ended_well: true,
            seconds: 0,
        }
    }

    /// Takes what a line says.
    pub(super) fn hear(&mut self, line: &str) {
        if let Some((_, sums)) = line.split_once("test result:") {
            self.passed += number_before(sums, " passed");
            self.failed += number_before(sums, " failed");
        } else if let Some((_, explored)) = line.split_once("explored ") {
            if let Some((name, _)) = explored.rsplit_once(": ") {
                let schedules = number_before(explored, " schedules");
                self.schedules.insert(name.to_owned(), schedules);
            }
        } else if FINDINGS.iter().any(|begins| line.contains(begins)) {
            self.findings.push(line.trim().to_owned());
        }
    }

    pub(super) fn ended(&mut self, well: bool) {
        self.ended_well &= well;
    }

    /// Whether tests ran, and nothing was found.
    pub fn is_clean(&self) -> bool {
        self.ended_well && self.failed == 0 && self.passed > 0
    }

    /// One line for a person.
    pub fn summary(&self) -> String {
        let schedules: u64 = self.schedules.values().sum();
        format!(
            "{}: {} tests passed, {} failed, {schedules} schedules explored, {} findings, {} s",
            self.command,
            self.passed,
            self.failed,
            self.findings.len(),
            self.seconds
        )
    }

    /// Puts this run in place of the last one of the same checker in a file of all of them.
    pub fn write_into(&self, path: &Path, name: &str) -> Result<()> {
        let mut all: BTreeMap<String, Value> = match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} is no list of reports", path.display()))?,
            Err(_) => BTreeMap::new(),
        };
        all.insert(name.to_owned(), serde_json::to_value(self)?);
        Ok(std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")?)
    }
}

/// The number right before `unit`, or 0.
fn number_before(text: &str, unit: &str) -> u64 {
    let before = text.split_once(unit).map_or("", |(before, _)| before);
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_becomes_numbers() {
        let mut report = Report::of(Checker::Loom);
        assert!(!report.is_clean(), "nothing ran");
        report.hear("test arena::schedules::settles ... explored arena: settling: 50 schedules");
        report.hear("test result: ok. 6 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out");
        report.hear("test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(report.schedules["arena: settling"], 50);
        assert_eq!((report.passed, report.is_clean()), (8, true));
        report.hear("==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x1");
        report.hear("test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured");
        assert_eq!((report.failed, report.findings.len(), report.is_clean()), (1, 1, false));
    }

    #[test]
    fn a_run_replaces_the_last_one_of_its_checker_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("checkers.json");
        let mut report = Report::of(Checker::Miri);
        report.write_into(&path, "miri").expect("a new file");
        Report::of(Checker::Loom).write_into(&path, "loom").expect("the same file");
        report.passed = 7;
        report.write_into(&path, "miri").expect("the same file");
        let text = std::fs::read_to_string(&path).expect("the file");
        let all: BTreeMap<String, Value> = serde_json::from_str(&text).expect("reports");
        assert_eq!((all.len(), &all["miri"]["passed"]), (2, &Value::from(7)));
    }
}
