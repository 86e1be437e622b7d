//! The drop-in library, built by itself: in a build of the whole workspace other crates would ask
//! `ggml` and `engine` for the llama.cpp that must not be in it. `host`: a stock llama.cpp from its
//! sources; `table`: what it says with and without the library; `pairs`: how fast.

mod host;
pub mod pairs;
pub mod table;

use crate::dist::tools::output;
use crate::workspace_root;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File of the library.
pub const LIBRARY: &str = "libggml_motley.so";

/// It stays loaded once it is: threads of its own would run on without their code.
const LINK_ARGUMENTS: [&str; 2] = ["-C", "link-arg=-Wl,-z,nodelete"];

/// Builds the library and checks that nothing of llama.cpp or C++ is in it; its path, beside the
/// programs. In a folder of its own: with other features of what it shares with them, either
/// build would make the other's stale.
pub fn build() -> Result<PathBuf> {
    let target = target_folder()?;
    let own = target.join("dropin");
    let built = build_into(&own.join("release"), |command| {
        command.env("CARGO_TARGET_DIR", &own);
    })?;
    let library = target.join("release").join(LIBRARY);
    std::fs::copy(&built, &library).with_context(|| library.display().to_string())?;
    Ok(library)
}

/// The same where cargo writes to `folder`, with what `prepare` adds to its command.
pub(crate) fn build_into(folder: &Path, prepare: impl FnOnce(&mut Command)) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["rustc", "--release", "--locked", "-p", "motley-dropin", "--lib"]);
    command.args(["--crate-type", "cdylib"]).current_dir(workspace_root());
    prepare(&mut command);
    let status = command.arg("--").args(LINK_ARGUMENTS).status()?;
    ensure!(status.success(), "the library does not build");
    let library = folder.join(LIBRARY);
    check(&library)?;
    Ok(library)
}

fn target_folder() -> Result<PathBuf> {
    let metadata = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace_root())
        .output()?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
    Ok(metadata["target_directory"].as_str().context("cargo names no target folder")?.into())
}

/// One function for hosts, and no library but the system's.
fn check(library: &Path) -> Result<()> {
    let shown = library.display();
    let dynamic = output(Command::new("readelf").arg("--dynamic").arg("--wide").arg(library))?;
    let needs = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let allowed = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux", "libpthread.so", "libdl.so"];
    for need in needs {
        ensure!(allowed.iter().any(|name| need.contains(name)), "{shown} needs {need}");
    }
    let symbols = output(Command::new("nm").args(["-D", "--defined-only"]).arg(library))?;
    let names: Vec<&str> = symbols.lines().filter_map(|line| line.split(' ').next_back()).collect();
    if names != ["ggml_backend_init"] {
        bail!("{shown} offers {}", names.join(", "));
    }
    Ok(())
}
