//! Compilers for every target: rustc's parts by rustup, and C by `zig cc` through `cargo-zigbuild`,
//! both from PyPI at one version.

use crate::dist::tools::{output, run};
use crate::workspace_root;
use anyhow::{Context, Result};
use motley_testkit::venv;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Name of their environment in the cache.
const FOLDER: &str = "venv-zig";
/// A C compiler for every target, and what gives it to cargo.
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.20.1", "ziglang==0.14.1"];

/// What is called.
pub(super) struct Tools {
    python: PathBuf,
    /// Where this machine's build of llama.cpp has put its interface.
    bindings: PathBuf,
    /// Cargo's folder for this build.
    target_folder: PathBuf,
}

impl Tools {
    /// Installs what is missing.
    pub(super) fn install(triples: &[&str]) -> Result<Self> {
        let installed = output(Command::new("rustup").args(["target", "list", "--installed"]))?;
        let missing: Vec<_> = triples
            .iter()
            .filter(|triple| !installed.lines().any(|line| line == **triple))
            .collect();
        if !missing.is_empty() {
            run(Command::new("rustup").args(["target", "add"]).args(missing))?;
        }
        let python = venv::python(FOLDER, &PACKAGES, "ziglang")?;
        let target_folder = target_folder()?;
        let bindings = newest_bindings(&target_folder.join("release/build"))
            .context("no llama.cpp was built here; `cargo build --release` first")?;
        Ok(Self { python, bindings, target_folder })
    }

    /// `cargo-zigbuild VERB --release --target TRIPLE`, which gives crates' build scripts a C
    /// compiler for the target and has llama.cpp's passed over.
    pub(super) fn cargo(&self, verb: &str, triple: &str) -> Result<Command> {
        let bin = self.python.parent().context("a program in no folder")?;
        let mut command = Command::new(bin.join("cargo-zigbuild"));
        let bindings = self.bindings.display();
        command.args([verb, "--release", "--locked", "--target", triple]);
        command
            .args(["--config", &format!("target.{triple}.llama.rustc-env.OUT_DIR='{bindings}'")]);
        command.env("CARGO_ZIGBUILD_PYTHON_PATH", &self.python);
        command.env("CARGO_TARGET_DIR", &self.target_folder).current_dir(workspace_root());
        // Those of this machine's build; without flags it would be for this machine's processor.
        command.env_remove("CC").env_remove("CXX").env("RUSTFLAGS", "");
        Ok(command)
    }

    /// A folder for builds that have flags of their own.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.target_folder.join(name)
    }
}

/// Cargo's folder: this program lies in `release` or `debug` of it.
fn target_folder() -> Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.parent().and_then(Path::parent);
    Ok(folder.context("a folder this was built in")?.to_owned())
}

/// The folder of the newest interface among llama.cpp's builds.
fn newest_bindings(build: &Path) -> Option<PathBuf> {
    let folders = build.read_dir().ok()?.flatten();
    let named = folders.filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with("llama-cpp-sys-2-"))
    });
    let made = named.filter_map(|entry| {
        let out = entry.path().join("out");
        let made: SystemTime = out.join("bindings.rs").metadata().ok()?.modified().ok()?;
        Some((made, out))
    });
    made.max().map(|(_, out)| out)
}
