//! `cargo xtask dist --target x86_64-pc-windows-gnu`: the program for Windows, built on Linux. One
//! file that needs nothing but what every Windows 10 has, with kernels of one level of x86-64.
//!
//! - `compilers`: this machine's clang, and where headers and libraries of Windows come from.
//! - `pack`: a zip to unpack anywhere, and a program that installs it.
//! - `wine`: who runs programs for Windows here; `trial`: both packages run by it.

pub(crate) mod compilers;
mod pack;
pub(super) mod trial;
pub(crate) mod wine;

pub use trial::Tried;

use super::Dist;
use super::bill;
use super::build::{BINARY, Facts};
use super::processor::Processor;
use super::tools::{AUDITABLE, run};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As Rust names it.
pub const TRIPLE: &str = "x86_64-pc-windows-gnu";
/// The system in names of packages.
const SYSTEM: &str = "windows";

/// What is the same wherever the program is for: this machine's processor is that of the target.
pub(crate) fn facts() -> Result<Facts> {
    Facts::read(Processor::of_triple("x86_64-unknown-linux-gnu")?)
}

/// Builds and packs; the artefacts.
pub(super) fn dist(asked: &Dist, say: &mut dyn FnMut(&str)) -> Result<Vec<PathBuf>> {
    ensure!(asked.features.is_empty(), "--features \"\": the one for Windows has none so far");
    let facts = facts()?;
    fs::create_dir_all(&asked.out).with_context(|| asked.out.display().to_string())?;
    let out = asked.out.canonicalize()?;
    say("building");
    let program = build(&facts)?;
    say("bill of materials");
    let bill = bill::write(&facts, (TRIPLE, SYSTEM), "", &out)?;
    say("folder");
    let tree = pack::stage(&facts, &program, &bill)?;
    say("zip");
    let zip = pack::zip(&facts, &tree, &out)?;
    say("installer");
    let installer = pack::installer(&facts, &tree, &out)?;
    super::write_sums(&facts.version, &out)?;
    Ok(vec![bill, zip, installer])
}

/// The program, with all its symbols.
fn build(facts: &Facts) -> Result<PathBuf> {
    compilers::install()?;
    AUDITABLE.install(&facts.tools())?;
    let mut command = AUDITABLE.command(&facts.tools());
    command.args(["build", "--release", "--locked", "--package", "motley-cli"]);
    command.args(["--target", TRIPLE]);
    compilers::set(&mut command, facts)?;
    run(&mut command)?;
    Ok(facts.target_folder.join(TRIPLE).join("release").join(format!("{BINARY}.exe")))
}

/// Without symbols nobody looks up.
fn strip(from: &Path, to: &Path) -> Result<()> {
    run(Command::new(compilers::STRIP).args(["--strip-unneeded", "-o"]).arg(to).arg(from))
}
