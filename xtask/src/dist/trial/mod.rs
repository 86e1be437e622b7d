//! `cargo xtask dist-test`: every artefact installed and run in clean roots, and how fast it is
//! beside a build for this machine. Needs root's rights, as `chroot` does.
//!
//! - [`root`]: a Debian with nothing but its base; [`install`]: how each artefact gets into one.
//! - `asked`: how the program is called; `variants`: every CPU level's kernels, one by one, on this machine.
//! - [`recording`]: the first minutes in such a root, on a terminal.
//! - [`speed`]: pairs of runs, one after the other.
//! - [`emulated`]: packages for another processor, as far as an emulator runs them; [`exact`]: what is
//!   asked of a program there, and of one for Windows ([`super::windows`]).
//! - [`report`]: what came of it; `unpacked`: the archive's tree, and the model every trial runs.

mod asked;
pub mod emulated;
pub mod exact;
pub mod install;
pub mod recording;
pub mod report;
pub mod root;
pub mod speed;
mod unpacked;
mod variants;

use super::build::Facts;
use super::processor::{PROCESSORS, Processor};
use super::tools;
use super::windows::{self, Tried};
use anyhow::{Context, Result, ensure};
use asked::ASKED;
use emulated::Emulated;
use install::{Artefact, Way};
use motley_testkit::synth::Arch;
use report::{Ran, Report, Row};
use root::Root;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use unpacked::{files_of, small_model, unpack_archive};

/// Debian releases: the oldest that is promised, and those after it.
const SUITES: [&str; 3] = ["bullseye", "bookworm", "trixie"];
/// Where a root sees the folder with the model.
const MODELS: &str = "/models";

/// What is tried.
#[derive(Debug, Clone, clap::Args)]
pub struct Trial {
    /// Processor and system the artefacts are for. Another processor than this machine's is emulated:
    /// exactness and one server, nothing installed, no speed. Those for Windows are run by Wine.
    #[arg(long, value_name = "TRIPLE", default_value = PROCESSORS[0].triple)]
    pub target: String,
    /// Folder the artefacts are in.
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    pub out: PathBuf,
    /// A `motley` built for this machine, to compare speeds with; for Windows, texts.
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

/// What a trial found.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Found {
    Installed(Report),
    Emulated(Emulated),
    Windows(Box<Tried>),
}

impl Found {
    /// What went wrong, in words; nothing when all is well.
    pub fn faults(&self) -> Vec<String> {
        match self {
            Self::Installed(report) => report.faults(),
            Self::Emulated(report) => report.faults(),
            Self::Windows(report) => report.faults(),
        }
    }

    /// Lines of at most 80 columns.
    pub fn table(&self) -> String {
        match self {
            Self::Installed(report) => report.table(),
            Self::Emulated(report) => report.table(),
            Self::Windows(report) => report.table(),
        }
    }
}

/// Tries everything.
pub fn trial(asked: &Trial, say: &mut dyn FnMut(&str)) -> Result<Found> {
    if asked.target == windows::TRIPLE {
        return Ok(Found::Windows(Box::new(windows::trial::trial(
            &asked.out,
            asked.native.as_deref(),
            say,
        )?)));
    }
    let processor = Processor::of_triple(&asked.target)?;
    let compares = asked.native.is_some() || asked.speed_model.is_some();
    ensure!(
        processor.is_own() || !compares,
        "--native and --speed-model compare speeds, of which an emulator of {} says nothing",
        processor.name
    );
    tools::install_programs(processor)?;
    let facts = Facts::read(processor)?;
    Ok(match processor.is_own() {
        true => Found::Installed(installed(asked, &facts, say)?),
        false => Found::Emulated(emulated::trial(&asked.out, &facts, say)?),
    })
}

/// In clean roots.
fn installed(asked: &Trial, facts: &Facts, say: &mut dyn FnMut(&str)) -> Result<Report> {
    let model = small_model(Arch::Qwen3moe)?;
    let mut rows = Vec::new();
    for artefact in install::artefacts(&asked.out, facts)? {
        for &suite in if artefact.way == Way::Image { &["image"][..] } else { &SUITES } {
            say(&format!("{} in {suite}", artefact.name()));
            rows.push(try_in(facts, &artefact, suite, &model)?);
        }
    }
    say("unpacked, for this machine");
    let tree = unpack_archive(facts, &asked.out)?;
    let program = tree.join("bin/motley");
    let files = files_of(facts.processor, &tree)?;
    say("every CPU level");
    let variants = variants::try_all(facts, &tree, &model)?;
    let speed = match &asked.native {
        Some(native) => {
            say("speed");
            let model = asked.speed_model.as_ref().unwrap_or(&model);
            Some(speed::compare(facts, [&program, native], model, asked.pairs)?)
        }
        None => None,
    };
    Ok(Report { version: facts.version.clone(), files, rows, variants, speed })
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
