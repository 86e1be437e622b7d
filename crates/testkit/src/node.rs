//! Node with packages from npm, in the cache folder: installed once, used again.

use crate::cache;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What was installed, beside it: other versions are installed anew.
const INSTALLED: &str = "motley-packages";

/// The folder `name` with `packages` (each as `name@version`) in its `node_modules`; installed if
/// they are missing or others. Nothing they bring is run while they are installed.
pub fn packages(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = cache::models_folder()?.with_file_name(name);
    let wanted = packages.join(" ");
    let installed = fs::read_to_string(folder.join(INSTALLED));
    if installed.is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    eprintln!("installing {} into {}", packages.join(", "), folder.display());
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    let installed = Command::new("npm")
        .args(["install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg("--omit=optional")
        .args(packages)
        .current_dir(&folder)
        .status()
        .context("npm is needed")?;
    ensure!(installed.success(), "npm cannot install {}", packages.join(", "));
    fs::write(folder.join(INSTALLED), wanted)?;
    Ok(folder)
}
