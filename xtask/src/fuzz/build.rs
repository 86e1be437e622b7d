//! The targets' programs, built by cargo-fuzz.

use super::options::{Fuzz, Target, fuzz_folder};
use crate::workspace_root;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;

/// Builds what is asked for; everything at once when that is all.
pub(super) fn build(fuzz: &Fuzz) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["fuzz", "build", "--sanitizer", "none", "--debug-assertions", "--fuzz-dir"]);
    command.arg(fuzz_folder()).arg("--target-dir").arg(&fuzz.build_folder);
    if let [target] = fuzz.targets[..] {
        command.arg(target.name);
    }
    if !fuzz.needs_engine() {
        command.arg("--no-default-features");
    }
    command.current_dir(workspace_root());
    // As in the main build, so that llama.cpp comes out of the compiler's cache.
    command.env("RUSTFLAGS", "-C target-cpu=native").env("LLAMA_LIB_PROFILE", "Release");
    // Of the toolchain that runs this program; cargo-fuzz asks for none.
    command.env_remove("CARGO").env_remove("RUSTC");
    let status = command.status().context("cannot run cargo fuzz; .ci/run installs it")?;
    ensure!(status.success(), "the fuzz targets were not built");
    Ok(())
}

/// The program of a target that was built.
pub(super) fn program(fuzz: &Fuzz, target: &Target) -> Result<PathBuf> {
    let path = fuzz.build_folder.join(host()?).join("release").join(target.name);
    ensure!(path.exists(), "{} was not built", path.display());
    Ok(path)
}

/// The triple of this machine: cargo-fuzz always names one.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}
