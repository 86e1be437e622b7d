//! Python with packages from PyPI, in the cache folder: installed once, used again.

use crate::cache;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was installed, beside it: other versions are installed anew.
const INSTALLED: &str = "motley-packages";

/// Python of the environment `name` in which `import`s work; installed from `packages` (each as
/// `name==version`) if they are missing or others.
pub fn python(name: &str, packages: &[&str], imports: &str) -> Result<PathBuf> {
    let folder = cache::models_folder()?.with_file_name(name);
    let _installs = alone(&folder)?;
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

/// Tests run side by side, each in a process of its own: one installs, the others wait, because a
/// second installation takes away what the first one's tests are running.
fn alone(folder: &Path) -> Result<File> {
    let path = folder.with_extension("lock");
    fs::create_dir_all(path.parent().context("a folder in none")?)?;
    let lock = File::create(&path).with_context(|| path.display().to_string())?;
    lock.lock().with_context(|| path.display().to_string())?;
    Ok(lock)
}

fn has(python: &Path, imports: &str) -> bool {
    let check = Command::new(python).args(["-c", &format!("import {imports}")]).output();
    check.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_installs_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let environment = folder.path().join("some-venv");
        let first = alone(&environment).unwrap();
        let second = File::open(environment.with_extension("lock")).unwrap();
        assert!(second.try_lock().is_err());
        drop(first);
        assert!(second.try_lock().is_ok());
    }
}
