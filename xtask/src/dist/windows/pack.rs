//! The program and what goes with it in one folder, as a zip and as an installer.
//!
//! ```text
//! motley.exe
//! LICENSE-APACHE.txt, LICENSE-MIT.txt, LICENSE-llama.cpp.txt
//! motley.cdx.json
//! ```

use super::compilers::STRIP;
use crate::dist::build::{BINARY, Facts};
use crate::dist::tools::run;
use crate::workspace_root;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The system in names of packages.
pub(super) const SYSTEM: &str = "windows";
/// What NSIS makes the installer of.
const SCRIPT: &str = "packaging/windows/motley.nsi";

/// Makes the folder; where it is.
pub(super) fn stage(facts: &Facts, program: &Path, bill: &Path) -> Result<PathBuf> {
    let tree = facts.scratch("windows")?.join(folder_name(facts));
    fs::create_dir(&tree)?;
    strip(program, &tree.join(format!("{BINARY}.exe")))?;
    for (from, to) in [
        (workspace_root().join("LICENSE-APACHE"), "LICENSE-APACHE.txt"),
        (workspace_root().join("LICENSE-MIT"), "LICENSE-MIT.txt"),
        (facts.llama_folder.join("llama.cpp/LICENSE"), "LICENSE-llama.cpp.txt"),
        (bill.to_owned(), "motley.cdx.json"),
    ] {
        fs::copy(&from, tree.join(to)).with_context(|| from.display().to_string())?;
    }
    Ok(tree)
}

/// The one folder in the zip; files of the packages begin with its name.
pub(super) fn folder_name(facts: &Facts) -> String {
    format!("{BINARY}-{}-{}-{SYSTEM}", facts.version, facts.processor.name)
}

/// Where the zip is.
pub(super) fn zip_path(facts: &Facts, out: &Path) -> PathBuf {
    out.join(format!("{}.zip", folder_name(facts)))
}

/// Where the installer is.
pub(super) fn installer_path(facts: &Facts, out: &Path) -> PathBuf {
    out.join(format!("{}-setup.exe", folder_name(facts)))
}

/// Writes the folder as a zip.
pub(super) fn zip(facts: &Facts, tree: &Path, out: &Path) -> Result<PathBuf> {
    let path = zip_path(facts, out);
    let (above, name) = (tree.parent().context("a folder in none")?, folder_name(facts));
    run(Command::new("python3")
        .args(["-m", "zipfile", "--create"])
        .arg(&path)
        .arg(name)
        .current_dir(above))?;
    Ok(path)
}

/// Writes the installer.
pub(super) fn installer(facts: &Facts, tree: &Path, out: &Path) -> Result<PathBuf> {
    let path = installer_path(facts, out);
    run(Command::new("makensis")
        .args(["-V2", "-NOCD", "-INPUTCHARSET", "UTF8"])
        .arg(format!("-DVERSION={}", facts.version))
        .arg(format!("-DFOLDER={}", tree.display()))
        .arg(format!("-DINSTALLER={}", path.display()))
        .arg(workspace_root().join(SCRIPT)))?;
    Ok(path)
}

/// Without symbols nobody looks up.
fn strip(from: &Path, to: &Path) -> Result<()> {
    run(Command::new(STRIP).args(["--strip-unneeded", "-o"]).arg(to).arg(from))
}
