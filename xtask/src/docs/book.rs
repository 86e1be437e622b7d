//! mdBook, as a program of one version; decision 0092 says why that and not a library.

use crate::workspace_root;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The one version pages are looked at with.
const VERSION: &str = "0.5.4";

/// Builds the book into a folder; its first page.
pub(super) fn build(out: Option<&Path>) -> Result<PathBuf> {
    check_version()?;
    let out = match out {
        Some(out) => std::path::absolute(out)?,
        None => std::env::current_exe()?.with_file_name("book"),
    };
    let output = Command::new("mdbook")
        .args(["build", "docs", "--dest-dir"])
        .arg(&out)
        .current_dir(workspace_root())
        .output()
        .context("mdbook")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "mdbook failed:\n{said}");
    let troubles: Vec<&str> =
        said.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
    ensure!(troubles.is_empty(), "mdbook says:\n{}", troubles.join("\n"));
    let first = out.join("index.html");
    ensure!(first.is_file(), "mdbook wrote no {}", first.display());
    Ok(first)
}

fn check_version() -> Result<()> {
    let install = format!("cargo install --locked mdbook --version ={VERSION}");
    let said = match Command::new("mdbook").arg("--version").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(_) => bail!("no mdbook here; `{install}`, or `--no-book` for the checks alone"),
    };
    ensure!(said == format!("mdbook v{VERSION}"), "{said} is here; `{install}`");
    Ok(())
}
