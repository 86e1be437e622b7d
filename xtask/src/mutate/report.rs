//! All trials in numbers, and every one that ended badly in words.

use super::options::{LoadingPath, Mutations};
use super::trial::Ending;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::Command;

/// One trial of one mutation.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) number: usize,
    pub(super) path: LoadingPath,
    pub(super) kinds: Vec<&'static str>,
    /// The model and its changes, in words.
    pub(super) said: String,
    pub(super) ending: Ending,
}

impl Run {
    /// A line for people, if it ended badly.
    pub(super) fn bad_line(&self) -> Option<String> {
        let Ending::Bad { how, said } = &self.ending else { return None };
        let Self { number, path, said: what, .. } = self;
        Some(format!("{number} {}: {how}: {what} | {said}", path.name()))
    }
}

/// How the trials of one kind ended.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Answers.
    pub answered: usize,
    /// Refusals by the program itself, before or after a child looked.
    pub refused: usize,
    /// Files that ended the child, and got a message in the parent.
    pub ended_the_child: usize,
    /// What must not be: the program itself was ended, or did not end.
    pub bad: usize,
}

impl Tally {
    fn add(&mut self, ending: &Ending) {
        match ending {
            Ending::Answered => self.answered += 1,
            Ending::Refused(_) => self.refused += 1,
            Ending::ChildFailed(_) => self.ended_the_child += 1,
            Ending::Bad { .. } => self.bad += 1,
        }
    }
}

/// A trial in words.
#[derive(Debug, Clone, Serialize)]
pub struct Told {
    /// Its mutation's number.
    pub number: usize,
    pub path: LoadingPath,
    /// The model and its changes.
    pub mutation: String,
    /// How it ended.
    pub how: String,
    /// The last line on stderr.
    pub said: String,
}

/// Everything, for a file.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The command that gives the same mutations again.
    pub command: String,
    /// What the program says of itself.
    pub version: String,
    /// Mutations asked for; a few cannot be written into a file and are left out.
    pub mutations: usize,
    pub by_path: BTreeMap<LoadingPath, Tally>,
    /// By kind of change; a mutation with several counts in each.
    pub by_kind: BTreeMap<&'static str, Tally>,
    /// What ended the child, and how often.
    pub child_ends: BTreeMap<String, usize>,
    /// Every trial that ended badly.
    pub bad: Vec<Told>,
}

impl Report {
    pub(super) fn of(mutations: &Mutations, runs: &[Run]) -> Result<Self> {
        let mut report = Self {
            command: command(mutations),
            version: version(mutations)?,
            mutations: mutations.numbers.len(),
            by_path: BTreeMap::new(),
            by_kind: BTreeMap::new(),
            child_ends: BTreeMap::new(),
            bad: Vec::new(),
        };
        for run in runs {
            report.add(run);
        }
        report.bad.sort_by_key(|told| (told.number, told.path));
        Ok(report)
    }

    fn add(&mut self, run: &Run) {
        self.by_path.entry(run.path).or_default().add(&run.ending);
        let mut kinds = run.kinds.clone();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.iter().for_each(|kind| self.by_kind.entry(kind).or_default().add(&run.ending));
        match &run.ending {
            Ending::ChildFailed(said) => {
                *self.child_ends.entry(said.clone()).or_default() += 1;
            }
            Ending::Bad { how, said } => self.bad.push(Told {
                number: run.number,
                path: run.path,
                mutation: run.said.clone(),
                how: how.clone(),
                said: said.clone(),
            }),
            _ => {}
        }
    }

    /// One line for each path.
    pub fn summary(&self) -> String {
        let line = |(path, tally): (&LoadingPath, &Tally)| {
            let Tally { answered, refused, ended_the_child, bad } = tally;
            format!(
                "{}: {answered} answered, {refused} refused, {ended_the_child} ended the child, \
                 {bad} bad",
                path.name()
            )
        };
        self.by_path.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn command(mutations: &Mutations) -> String {
    let path = match mutations.paths[..] {
        [one] => one.name(),
        _ => "both",
    };
    let flags: String = mutations.flags.iter().map(|flag| format!(" --flag {flag}")).collect();
    let numbers = &mutations.numbers;
    format!(
        "cargo xtask mutate --count {} --from {} --seed {} --path {path}{flags}",
        numbers.len(),
        numbers.start,
        mutations.seed
    )
}

fn version(mutations: &Mutations) -> Result<String> {
    let output = Command::new(&mutations.motley).arg("--version").output();
    let output = output.with_context(|| format!("cannot run {}", mutations.motley.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
