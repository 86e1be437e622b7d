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

pub use compilers::TRIPLE;
pub use trial::Tried;

use super::bill;
use super::build::{BINARY, Facts};
use super::processor::Processor;
use super::tools::{AUDITABLE, run};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

/// What is the same wherever the program is for: this machine's processor is that of the target.
pub(crate) fn facts() -> Result<Facts> {
    Facts::read(Processor::of_triple("x86_64-unknown-linux-gnu")?)
}

/// Builds and packs into `out`; the version, and the artefacts.
pub(super) fn dist(
    features: &str,
    out: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<(String, Vec<PathBuf>)> {
    ensure!(features.is_empty(), "--features \"\": the one for Windows has none so far");
    let facts = facts()?;
    say("building");
    let program = build(&facts)?;
    say("bill of materials");
    let bill = bill::write(&facts, (TRIPLE, pack::SYSTEM), "", out)?;
    say("folder");
    let tree = pack::stage(&facts, &program, &bill)?;
    say("zip");
    let zip = pack::zip(&facts, &tree, out)?;
    say("installer");
    let installer = pack::installer(&facts, &tree, out)?;
    Ok((facts.version, vec![bill, zip, installer]))
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
