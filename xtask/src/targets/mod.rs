//! `cargo xtask targets`: whether one tree is good for every system. Motley's crates are checked for
//! other systems and processors than this machine's, and with `--run` the tests of those that need
//! no llama.cpp are built for them and run by an emulator.
//!
//! In reading order:
//! * `systems`: the targets, what is checked for each, and who runs its tests.
//! * `tools`: compilers for all of them, and cargo with these.
//! * `check`: one check; `emulated`: tests of one target, `emulator`: who runs them.
//! * `report`: all of it as a table, and lines of platform code.
//!
//! llama.cpp is not built for other systems: its interface is the one that this machine's build has
//! made, so a check says nothing of it, nor of the few lines of C++ beside it.

mod check;
mod emulated;
mod emulator;
mod report;
mod systems;
mod tools;

pub use report::{CheckReport, Report, TargetReport, TestReport};

use crate::tidy::{Tree, platforms};
use crate::workspace_root;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use systems::TARGETS;

/// What is asked for.
#[derive(Debug, Clone, clap::Args)]
pub struct Targets {
    /// One target (default: all)
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Also run tests, by emulators where there are some
    #[arg(long)]
    pub run: bool,
    /// File for the report
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Checks, and runs where that is asked for; `say` is told how it goes.
pub fn targets(asked: &Targets, say: &mut dyn FnMut(&str)) -> Result<Report> {
    let wanted = |triple: &str| asked.target.as_deref().is_none_or(|target| target == triple);
    let targets: Vec<_> = TARGETS.iter().filter(|target| wanted(target.triple)).collect();
    let known = || TARGETS.map(|target| target.triple).join(", ");
    ensure!(!targets.is_empty(), "--target: one of {}", known());
    let triples: Vec<_> = targets.iter().map(|target| target.triple).collect();
    let tools = tools::Tools::install(&triples).context("compilers for other targets")?;
    let mut reports = Vec::new();
    for target in targets {
        let mut checks = Vec::new();
        for what in &systems::CHECKS {
            say(&format!("{}: {}", target.triple, what.name));
            checks.push(check::run(&tools, target, what)?);
        }
        let tests = match &target.runner {
            Some(runner) if asked.run => {
                say(&format!("{}: tests by {}", target.triple, runner.emulator.program()));
                Some(emulated::run(&tools, target, runner)?)
            }
            _ => None,
        };
        reports.push(TargetReport { target: target.triple.into(), checks, tests });
    }
    let tree = Tree::of_git(workspace_root())?;
    Ok(Report { targets: reports, platform_lines: platforms::lines(&tree) })
}
