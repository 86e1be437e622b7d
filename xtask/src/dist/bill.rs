//! The bill of materials of the binary, as CycloneDX.

use super::build::{BINARY, Facts};
use super::tools::{CYCLONEDX, run};
use crate::workspace_root;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Of the bill; 1.5 is the newest the tool writes.
const SPEC_VERSION: &str = "1.5";

/// Writes it into `out`, of what is built for `target`, whose system is named so. The tool writes one
/// beside the manifest of every crate with a binary.
pub(super) fn write(
    facts: &Facts,
    (target, system): (&str, &str),
    features: &str,
    out: &Path,
) -> Result<PathBuf> {
    CYCLONEDX.install(&facts.tools())?;
    let what = ["--format", "json", "--describe", "binaries", "--spec-version", SPEC_VERSION];
    run(CYCLONEDX.command(&facts.tools()).args(what).args([
        "--features",
        features,
        "--target",
        target,
    ]))?;
    let mut found = None;
    for folder in ["crates/cli", "xtask", "crates/faultsim"] {
        for entry in fs::read_dir(workspace_root().join(folder))? {
            let path = entry?.path();
            if !path.to_string_lossy().ends_with(".cdx.json") {
                continue;
            }
            if folder == "crates/cli" {
                found = Some(fs::read_to_string(&path)?);
            }
            fs::remove_file(&path)?;
        }
    }
    let bill = found.context("cargo cyclonedx wrote nothing for the binary")?;
    let name = format!("{BINARY}-{}-{}-{system}.cdx.json", facts.version, facts.processor.name);
    let path = out.join(name);
    // Crates of this workspace are named by where they lie.
    fs::write(&path, bill.replace(&workspace_root().display().to_string(), ""))?;
    Ok(path)
}
