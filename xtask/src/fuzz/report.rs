//! All targets in numbers, and every crash with the command that replays it.

use super::options::Fuzz;
use crate::workspace_root;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lines of libFuzzer's words on a crash that are kept.
const SHOWN_LINES: usize = 12;

/// What came of all targets.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What was run.
    pub command: String,
    pub targets: Vec<TargetReport>,
}

/// What came of one.
#[derive(Debug, Serialize)]
pub struct TargetReport {
    pub target: &'static str,
    pub seconds: u64,
    /// Inputs tried.
    pub executions: u64,
    /// Edges of the control flow that were taken.
    pub edges: u64,
    /// Edges there are, those of all crates in the program.
    pub edges_in_all: u64,
    /// Edges with how often they were taken, and comparisons.
    pub features: u64,
    /// Inputs kept because each does something no other does, and seeds.
    pub corpus: usize,
    pub peak_memory_mib: u64,
    pub slowest_input_seconds: u64,
    /// `loader`: headers our own checks accept that ended the child; the program itself went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_ended: Option<Findings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash: Option<Crash>,
}

/// Headers that ended the child.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    pub headers: usize,
    /// By the child's last words: how many, and one of the headers.
    pub by_words: BTreeMap<String, (usize, String)>,
}

/// An input that failed.
#[derive(Debug, Serialize)]
pub struct Crash {
    /// The file, below the workspace.
    pub input: Option<PathBuf>,
    /// Runs it again.
    pub replay: String,
    /// What was said.
    pub said: Vec<String>,
}

impl Report {
    pub(super) fn of(fuzz: &Fuzz, mut targets: Vec<TargetReport>) -> Self {
        let place =
            |report: &TargetReport| fuzz.targets.iter().position(|t| t.name == report.target);
        targets.sort_by_key(place);
        let mut command = format!("cargo xtask fuzz --seconds {}", fuzz.seconds);
        if let [target] = fuzz.targets[..] {
            command += &format!(" --target {}", target.name);
        } else if !fuzz.needs_engine() {
            command += " --without-engine";
        }
        Self { command, targets }
    }

    /// Targets that crashed.
    pub fn crashes(&self) -> impl Iterator<Item = (&str, &Crash)> {
        self.targets.iter().filter_map(|target| Some((target.target, target.crash.as_ref()?)))
    }
}

impl TargetReport {
    /// For people.
    pub(super) fn line(&self) -> String {
        let Self { target, seconds, executions, edges, features, corpus, .. } = self;
        let end = match (&self.crash, &self.child_ended) {
            (Some(_), _) => ", CRASHED".to_owned(),
            (None, Some(found)) => format!(", {} headers ended the child", found.headers),
            (None, None) => String::new(),
        };
        format!(
            "{target}: {executions} inputs in {seconds} s, {edges} edges, {features} features, \
             {corpus} kept{end}"
        )
    }
}

impl Findings {
    /// Of lines of JSON; none when there are no lines.
    pub(super) fn of(lines: &str) -> Result<Option<Self>> {
        let mut found = Self::default();
        for line in lines.lines() {
            let line: BTreeMap<String, String> =
                serde_json::from_str(line).context("a finding of the loader")?;
            let text = |key: &str| line.get(key).cloned().unwrap_or_default();
            found.headers += 1;
            let (count, _) = found.by_words.entry(text("child")).or_insert((0, text("header")));
            *count += 1;
        }
        Ok((found.headers > 0).then_some(found))
    }
}

impl Crash {
    pub(super) fn new(target: &str, input: Option<&PathBuf>, said: &str) -> Self {
        let below = |path: &PathBuf| {
            path.strip_prefix(workspace_root()).map_or_else(|_| path.clone(), Path::to_path_buf)
        };
        let input = input.map(below);
        let shown = input.as_ref().map_or("INPUT".into(), |path| path.display().to_string());
        let replay = format!("cargo xtask fuzz --target {target} --replay {shown}");
        Self { input, replay, said: lines(said) }
    }
}

/// What was said from the panic on, or the last of it, without the workspace's own place.
fn lines(said: &str) -> Vec<String> {
    let all: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).collect();
    let panic = all.iter().position(|line| line.contains("panicked at") || line.contains("ERROR:"));
    let from = panic.unwrap_or(all.len().saturating_sub(SHOWN_LINES));
    let root = format!("{}/", workspace_root().display());
    let short = |line: &&str| line.replace(&root, "").chars().take(300).collect();
    all[from..].iter().take(SHOWN_LINES).map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_by_the_childs_words() {
        let line = |header, child| serde_json::json!({ "header": header, "child": child });
        let lines = [line("a", "x"), line("b", "x"), line("c", "y")].map(|line| line.to_string());
        let found = Findings::of(&lines.join("\n")).expect("JSON").expect("findings");
        assert_eq!((found.headers, found.by_words.len()), (3, 2));
        assert_eq!(found.by_words["x"], (2, "a".into()));
        assert_eq!(Findings::of("").expect("nothing"), None);
    }

    #[test]
    fn a_crash_says_how_to_replay_it() {
        let input = workspace_root().join("fuzz/artifacts/gguf/crash-1");
        let crash = Crash::new(
            "gguf",
            Some(&input),
            &format!("#1 a\nx\nthread panicked at y\nz {}\n", input.display()),
        );
        assert_eq!(
            crash.replay,
            "cargo xtask fuzz --target gguf --replay fuzz/artifacts/gguf/crash-1"
        );
        assert_eq!(crash.said, ["thread panicked at y", "z fuzz/artifacts/gguf/crash-1"]);
    }
}
