//! What each corpus begins with: the files of `fuzz/seeds`, machines the repository has, and tiny
//! model files that are made.

use super::models;
use super::options::{Target, fuzz_folder};
use crate::workspace_root;
use anyhow::{Context, Result};
use std::path::Path;

/// Descriptions of machines, which `readers` reads.
const MACHINES: &str = "crates/machine/machines";

/// Writes the seeds of these targets beside what their corpora have gathered.
pub(super) fn write(targets: &[&Target]) -> Result<()> {
    for target in targets {
        let corpus = target.corpus();
        std::fs::create_dir_all(&corpus)?;
        copy(&fuzz_folder().join("seeds").join(target.name), &corpus)?;
        match target.name {
            "gguf" => models::write_whole(&corpus)?,
            "split" => models::write_split(&corpus)?,
            "readers" => copy(&workspace_root().join(MACHINES), &corpus)?,
            _ => {}
        }
    }
    Ok(())
}

/// Every file of a folder, if it is there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().context("a file")?;
        std::fs::copy(&path, to.join(name)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
