//! Python with packages from PyPI, in the cache folder: installed once, used again.

use crate::cache;
use anyhow::{Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was installed, beside it: other versions are installed anew.
const INSTALLED: &str = "motley-packages";

/// Python of the environment `name` in which `import`s work; installed from `packages` (each as
/// `name==version`) if they are missing or others.
pub fn python(name: &str, packages: &[&str], imports: &str) -> Result<PathBuf> {
    let folder = cache::models_folder()?.with_file_name(name);
    let python = folder.join("bin/python");
    let wanted = packages.join(" ");
    let installed = fs::read_to_string(folder.join(INSTALLED));
    if installed.is_ok_and(|installed| installed == wanted) && has(&python, imports) {
        return Ok(python);
    }
    eprintln!("installing {} into {}", packages.join(", "), folder.display());
    let created = Command::new("python3").args(["-m", "venv"]).arg(&folder).status()?;
    ensure!(created.success(), "python3 cannot create {}", folder.display());
    let installed =
        Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages).status()?;
    ensure!(installed.success() && has(&python, imports), "no {} here", packages.join(", "));
    fs::write(folder.join(INSTALLED), wanted)?;
    Ok(python)
}

fn has(python: &Path, imports: &str) -> bool {
    let check = Command::new(python).args(["-c", &format!("import {imports}")]).output();
    check.is_ok_and(|output| output.status.success())
}
