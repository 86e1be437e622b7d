//! What came of it, as a table and as JSON.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Every target, and how much of the code is any system's own.
#[derive(Debug, Serialize)]
pub struct Report {
    pub targets: Vec<TargetReport>,
    /// Lines of platform code by the names of its files (`linux`, `macos`, `windows`, …).
    pub platform_lines: BTreeMap<String, usize>,
}

/// One target.
#[derive(Debug, Serialize)]
pub struct TargetReport {
    pub target: String,
    pub checks: Vec<CheckReport>,
    /// Absent where none were run.
    pub tests: Option<TestReport>,
}

/// One check.
#[derive(Debug, Serialize)]
pub struct CheckReport {
    pub name: String,
    pub good: bool,
    pub warnings: usize,
    pub seconds: f64,
    /// The beginning of what the compiler says.
    pub errors: Vec<String>,
}

/// Tests under an emulator.
#[derive(Debug, Serialize)]
pub struct TestReport {
    pub runner: String,
    pub crates: Vec<String>,
    pub good: bool,
    pub passed: u64,
    pub failed: u64,
    pub passed_over: Vec<String>,
    pub seconds: f64,
    /// The beginning of what failed.
    pub failures: Vec<String>,
}

impl Report {
    /// Whether everything passed that was checked or run.
    pub fn is_good(&self) -> bool {
        self.targets.iter().all(TargetReport::is_good)
    }

    /// A row for each target, what went wrong below it, and lines of platform code.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for report in &self.targets {
            let checks = report.checks.iter().map(|check| {
                let result = if check.good { "ok" } else { "FAILED" };
                let warnings = match check.warnings {
                    0 => String::new(),
                    count => format!(", {count} warnings"),
                };
                format!("{} {result} ({:.0} s{warnings})", check.name, check.seconds)
            });
            let tests = report.tests.iter().map(|tests| {
                format!("{}: {} passed, {} failed", tests.runner, tests.passed, tests.failed)
            });
            let cells: Vec<String> = checks.chain(tests).collect();
            let _ = writeln!(text, "{:<28} {}", report.target, cells.join("   "));
        }
        for line in self.targets.iter().flat_map(TargetReport::complaints) {
            let _ = writeln!(text, "{line}");
        }
        let lines: Vec<String> =
            self.platform_lines.iter().map(|(name, lines)| format!("{name} {lines}")).collect();
        let _ = writeln!(text, "lines of platform code: {}", lines.join(", "));
        text
    }
}

impl TargetReport {
    fn is_good(&self) -> bool {
        self.checks.iter().all(|check| check.good)
            && self.tests.as_ref().is_none_or(|tests| tests.good)
    }

    fn complaints(&self) -> impl Iterator<Item = &String> {
        let checks = self.checks.iter().filter(|check| !check.good).flat_map(|check| &check.errors);
        let tests = self.tests.iter().filter(|tests| !tests.good).flat_map(|tests| &tests.failures);
        checks.chain(tests)
    }
}
