//! `cargo xtask dist-test`: every artefact installed and run in clean roots, and how fast it is
//! beside a build for this machine. Needs root's rights, as `chroot` does.
//!
//! - [`root`]: a Debian with nothing but its base; [`install`]: how each artefact gets into one.
//! - `asked`: how the program is called; `variants`: every CPU level's kernels, one by one, on this machine.
//! - [`recording`]: the first minutes in such a root, on a terminal.
//! - [`speed`]: pairs of runs, one after the other.
//! - [`report`]: what came of it.

mod asked;
pub mod install;
pub mod recording;
pub mod report;
pub mod root;
pub mod speed;
mod variants;

use super::build::Facts;
use super::floor::Floor;
use super::stage::LIBRARIES;
use super::tools::{self, output};
use anyhow::{Context, Result};
use asked::ASKED;
use install::{Artefact, Way};
use motley_testkit::synth::{self, Arch, Preset, Request};
use motley_testkit::{cache, gguf_source::Tokenizer, smollm2};
use report::{Ran, Report, Row};
use root::Root;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian releases: the oldest that is promised, and those after it.
const SUITES: [&str; 3] = ["bullseye", "bookworm", "trixie"];
/// Where a root sees the folder with the model.
const MODELS: &str = "/models";

/// What is tried.
#[derive(Debug, Clone, clap::Args)]
pub struct Trial {
    /// Folder the artefacts are in.
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    pub out: PathBuf,
    /// A `motley` built for this machine, to compare speeds with.
    #[arg(long, value_name = "FILE")]
    pub native: Option<PathBuf>,
    /// Model of the comparison [default: the small one that every root runs].
    #[arg(long, value_name = "FILE.gguf")]
    pub speed_model: Option<PathBuf>,
    /// Pairs of runs compared.
    #[arg(long, default_value_t = 7)]
    pub pairs: usize,
    /// File for the report.
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

/// Tries everything.
pub fn trial(asked: &Trial, say: &mut dyn FnMut(&str)) -> Result<Report> {
    tools::install_programs()?;
    let facts = Facts::read()?;
    let model = small_model()?;
    let mut rows = Vec::new();
    for artefact in install::artefacts(&asked.out, &facts)? {
        for &suite in if artefact.way == Way::Image { &["image"][..] } else { &SUITES } {
            say(&format!("{} in {suite}", artefact.name()));
            rows.push(try_in(&facts, &artefact, suite, &model)?);
        }
    }
    say("unpacked, for this machine");
    let tree = unpack_archive(&facts, &asked.out)?;
    let program = tree.join("bin/motley");
    let files = files_of(&tree)?;
    say("every CPU level");
    let variants = variants::try_all(&facts, &tree, &model)?;
    let speed = match &asked.native {
        Some(native) => {
            say("speed");
            let model = asked.speed_model.as_ref().unwrap_or(&model);
            Some(speed::compare(&facts, [&program, native], model, asked.pairs)?)
        }
        None => None,
    };
    Ok(Report { version: facts.version.clone(), files, rows, variants, speed })
}

/// The smallest model there is, written into the cache if it is not there.
fn small_model() -> Result<PathBuf> {
    let request = Request::of_preset(Preset::Test(Arch::Qwen3moe));
    let path = cache::models_folder()?.join(request.file_name());
    if !path.exists() {
        let tokenizer = Tokenizer::read(&smollm2::fetch(false)?)?;
        synth::generate(&request, &tokenizer, &path, &mut |_| ())?;
    }
    Ok(path)
}

/// One artefact in one root that nothing was done in before.
fn try_in(facts: &Facts, artefact: &Artefact, suite: &str, model: &Path) -> Result<Row> {
    let mut row = Row::new(artefact, suite)?;
    let root = match artefact.way {
        Way::Image => Root::of_image(facts, &artefact.path)?,
        _ => Root::of_debian(facts, suite)?,
    };
    let root = root.with_folder(MODELS, model.parent().context("a model without a folder")?)?;
    if let Err(error) = install::install(&root, artefact) {
        row.error = Some(format!("{error:#}"));
        return Ok(row);
    }
    row.installs = true;
    let name = model.file_name().context("a model without a name")?.to_string_lossy();
    match run_all(&root, artefact.way.program(), &format!("{MODELS}/{name}")) {
        Ok(ran) => row.ran = Some(ran),
        Err(error) => row.error = Some(format!("{error:#}")),
    }
    Ok(row)
}

/// `--version`, `doctor` and `run`.
fn run_all(root: &Root, program: &str, model: &str) -> Result<Ran> {
    let version = root.output(&[program, "--version"])?;
    let doctor: Value = serde_json::from_str(&root.output(&[program, "doctor", "--json"])?)?;
    let words = [&[program, "run", model, "--json"], &ASKED[..]].concat();
    let answer: Value = serde_json::from_str(&root.output(&words)?)?;
    Ran::new(version.trim(), &doctor, &answer)
}

/// What each file of the tree takes and asks for.
fn files_of(tree: &Path) -> Result<Vec<report::File>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(tree.join(LIBRARIES))?.chain(fs::read_dir(tree.join("bin"))?) {
        let path = entry?.path();
        let name =
            path.file_name().context("a file without a name")?.to_string_lossy().into_owned();
        let floor = Floor::of(&path)?;
        floor.check(&name)?;
        files.push(report::File { name, bytes: path.metadata()?.len(), floor });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn unpack_archive(facts: &Facts, out: &Path) -> Result<PathBuf> {
    let folder = facts.scratch("unpacked")?;
    let archives = install::artefacts(out, facts)?;
    let archive = archives.iter().find(|artefact| artefact.way == Way::Archive);
    let archive = &archive.context("no tar.gz")?.path;
    let what = ["--extract", "--strip-components=1", "--file"];
    output(Command::new("tar").args(what).arg(archive).arg("--directory").arg(&folder))?;
    Ok(folder)
}
