//! One target for its time: libFuzzer in a process of its own, and what it left behind.

use super::build::program;
use super::options::{Fuzz, Target};
use super::output::Said;
use super::report::{Crash, Findings, TargetReport};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs it; a crash is part of the report.
pub(super) fn run(fuzz: &Fuzz, target: &Target) -> Result<TargetReport> {
    let (corpus, artifacts) = (target.corpus(), target.artifacts());
    std::fs::create_dir_all(&artifacts)?;
    let before = files(&artifacts)?;
    let found = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(program(fuzz, target)?);
    prepared(&mut command, fuzz, target)
        .env("MOTLEY_FUZZ_FINDINGS", found.path())
        .args([format!("-max_total_time={}", fuzz.seconds), "-print_final_stats=1".into()])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(target.dictionary().map(|path| format!("-dict={}", path.display())))
        .arg(&corpus)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    #[expect(
        clippy::disallowed_methods,
        reason = "a target that crashes does not say how long it ran"
    )]
    let begun = Instant::now();
    let output = command.output().with_context(|| format!("cannot start {}", target.name))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let said = Said::of(&text);
    let crash = (!output.status.success()).then(|| {
        let after = files(&artifacts).unwrap_or_default();
        Crash::new(target.name, after.difference(&before).next(), &text)
    });
    Ok(TargetReport {
        target: target.name,
        seconds: said.seconds.unwrap_or(begun.elapsed().as_secs()),
        executions: said.executions,
        edges: said.edges,
        edges_in_all: said.edges_in_all,
        features: said.features,
        corpus: files(&corpus)?.len(),
        peak_memory_mib: said.peak_memory_mib,
        slowest_input_seconds: said.slowest_input_seconds,
        child_ended: Findings::of(&std::fs::read_to_string(found.path())?)?,
        crash,
    })
}

/// What the target is run with, whatever it is run on.
pub(super) fn prepared<'a>(
    command: &'a mut Command,
    fuzz: &Fuzz,
    target: &Target,
) -> &'a mut Command {
    command
        .env("MOTLEY_FUZZ_PROGRAM", &fuzz.motley)
        .arg(format!("-max_len={}", target.input_bytes))
        .arg(format!("-timeout={}", target.input_seconds))
        .arg(format!("-rss_limit_mb={}", target.memory_mib))
}

fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    Ok(entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?)
}
