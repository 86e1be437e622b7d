//! The tree as a tar.gz: unpack it anywhere and call `bin/motley`.

use super::build::{BINARY, Facts};
use super::tools::run;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The same files give the same bytes: order, owner and time are fixed.
pub(super) const REPRODUCIBLE: [&str; 5] =
    ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=2026-01-01 00:00:00Z"];

/// Writes it into `out`; one folder is inside.
pub(super) fn pack(facts: &Facts, tree: &Path, out: &Path) -> Result<PathBuf> {
    let name = format!("{BINARY}-{}-{}-linux", facts.version, facts.processor.name);
    let path = out.join(format!("{name}.tar.gz"));
    run(Command::new("tar")
        .args(REPRODUCIBLE)
        .arg("--use-compress-program=gzip --no-name -9")
        .arg(format!("--transform=s,^\\.,{name},"))
        .arg("--create")
        .arg("--file")
        .arg(&path)
        .arg("--directory")
        .arg(tree)
        .arg("."))?;
    Ok(path)
}
