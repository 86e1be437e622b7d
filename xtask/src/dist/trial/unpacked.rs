//! The tree of the archive, and the model it is tried with.

use super::super::build::Facts;
use super::super::floor::Floor;
use super::super::processor::Processor;
use super::super::stage::LIBRARIES;
use super::super::tools::output;
use super::install::{self, Way};
use super::report;
use anyhow::{Context, Result};
use motley_testkit::smollm2;
use motley_testkit::synth::{self, Arch, Preset, Request};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The archive in `out`, unpacked; its root.
pub(super) fn unpack_archive(facts: &Facts, out: &Path) -> Result<PathBuf> {
    let folder = facts.scratch("unpacked")?;
    let archives = install::artefacts(out, facts)?;
    let archive = archives.iter().find(|artefact| artefact.way == Way::Archive);
    let archive = &archive.context("no tar.gz")?.path;
    let what = ["--extract", "--strip-components=1", "--file"];
    output(Command::new("tar").args(what).arg(archive).arg("--directory").arg(&folder))?;
    Ok(folder)
}

/// What each file of the tree takes and asks for.
pub(super) fn files_of(processor: &Processor, tree: &Path) -> Result<Vec<report::File>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(tree.join(LIBRARIES))?.chain(fs::read_dir(tree.join("bin"))?) {
        let path = entry?.path();
        let name =
            path.file_name().context("a file without a name")?.to_string_lossy().into_owned();
        let floor = Floor::of(&path, processor)?;
        floor.check(&name)?;
        files.push(report::File { name, bytes: path.metadata()?.len(), floor });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// The smallest model of an architecture, written into the cache if it is not there.
pub(super) fn small_model(architecture: Arch) -> Result<PathBuf> {
    smollm2::fetch(false)?;
    synth::ensure_cached(&Request::of_preset(Preset::Test(architecture)))
}
