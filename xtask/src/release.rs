//! `cargo xtask release`: the binary with the list of its crates inside it, a bill of materials
//! beside it, and their checksums. Publishes nothing.
//!
//! ```text
//! dist/motley-<version>-<target>/motley             carries its crates (section `.dep-v0`)
//!                               /motley.cdx.json    CycloneDX
//!                               /SHA256SUMS
//! ```
//!
//! Tools have one version each and are installed into the target folder when they are missing.

use crate::workspace_root;
use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A subcommand of cargo at the one version that is used.
struct Tool {
    name: &'static str,
    version: &'static str,
}

/// Puts the list of crates into a binary.
const AUDITABLE: Tool = Tool { name: "auditable", version: "0.7.7" };
/// Writes a bill of materials.
const CYCLONEDX: Tool = Tool { name: "cyclonedx", version: "0.5.9" };
/// Section of a binary that holds the list, compressed.
const SECTION: &[u8] = b".dep-v0";
/// The binary's name.
const BINARY: &str = "motley";
/// Of the bill of materials; 1.5 is the newest the tool writes.
const SPEC_VERSION: &str = "1.5";

/// What is released.
#[derive(Debug, Clone, clap::Args)]
pub struct Release {
    /// Features of the binary, with commas between.
    #[arg(long, value_name = "NAMES", default_value = "")]
    pub features: String,
    /// Folder the release's own is made in.
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    pub out: PathBuf,
}

/// Builds, describes and checks one release; the folder it is in.
pub fn release(asked: &Release) -> Result<PathBuf> {
    let facts = Facts::read()?;
    let tools = facts.target_folder.join("release-tools");
    for tool in [AUDITABLE, CYCLONEDX] {
        tool.install(&tools)?;
    }
    let folder = asked.out.join(format!("{BINARY}-{}-{}", facts.version, facts.host));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;

    let features = ["--features", &asked.features];
    let build = ["build", "--release", "--locked", "--package", "motley-cli"];
    AUDITABLE.run(&tools, &[&build[..], &features].concat())?;
    let binary = fs::read(facts.target_folder.join("release").join(BINARY))?;
    let listed = binary.windows(SECTION.len()).any(|bytes| bytes == SECTION);
    ensure!(listed, "the binary does not carry the list of its crates");

    let bill = bill_of_materials(&tools, &features)?;
    let copied = folder.join(BINARY);
    fs::copy(facts.target_folder.join("release").join(BINARY), &copied)?;
    fs::write(folder.join(format!("{BINARY}.cdx.json")), &bill)?;
    let sums = [(BINARY.to_owned(), binary), (format!("{BINARY}.cdx.json"), bill.into_bytes())];
    let sums: String = sums.iter().map(|(name, bytes)| checksum(name, bytes)).collect();
    fs::write(folder.join("SHA256SUMS"), sums)?;
    Ok(folder)
}

/// What cargo says of this workspace.
struct Facts {
    version: String,
    target_folder: PathBuf,
    host: String,
}

impl Facts {
    fn read() -> Result<Self> {
        let metadata =
            output(Command::new("cargo").args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
        let target = metadata["target_directory"].as_str().context("no target folder")?;
        let packages = metadata["packages"].as_array().context("no packages")?;
        let cli = packages.iter().find(|package| package["name"] == "motley-cli");
        let version = cli.and_then(|cli| cli["version"].as_str()).context("no motley-cli")?;
        let rustc = output(Command::new("rustc").arg("-vV"))?;
        let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).context("no host")?;
        Ok(Self { version: version.into(), target_folder: target.into(), host: host.into() })
    }
}

impl Tool {
    /// Whether `root` holds it: not every subcommand tells its own version.
    fn is_there(&self, root: &Path) -> bool {
        let listed = output(Command::new("cargo").args(["install", "--list", "--root"]).arg(root));
        let line = format!("cargo-{} v{}:", self.name, self.version);
        listed.is_ok_and(|listed| listed.lines().any(|found| found == line))
    }

    fn install(&self, root: &Path) -> Result<()> {
        if self.is_there(root) {
            return Ok(());
        }
        let version = format!("={}", self.version);
        let package = format!("cargo-{}", self.name);
        let args = ["install", "--locked", "--force", "--version", &version, &package, "--root"];
        run(Command::new("cargo").args(args).arg(root))
    }

    /// `cargo NAME`, of `root` before any other.
    fn command(&self, root: &Path) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(root.join("bin")).chain(std::env::split_paths(&path));
        let mut command = Command::new("cargo");
        command.arg(self.name).current_dir(workspace_root());
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
        command
    }

    fn run(&self, root: &Path, args: &[&str]) -> Result<()> {
        run(self.command(root).args(args))
    }
}

/// The binary's, as JSON. The tool writes one beside the manifest of every crate with a binary.
fn bill_of_materials(tools: &Path, features: &[&str; 2]) -> Result<String> {
    let what = ["--format", "json", "--describe", "binaries", "--spec-version", SPEC_VERSION];
    CYCLONEDX.run(tools, &[&what[..], features].concat())?;
    let mut found = None;
    for folder in ["crates/cli", "xtask"] {
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
    // Crates of this workspace are named by where they lie.
    Ok(bill.replace(&workspace_root().display().to_string(), ""))
}

/// A line as `sha256sum` writes it.
fn checksum(name: &str, bytes: &[u8]) -> String {
    let mut line = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(line, "{byte:02x}");
    }
    line + "  " + name + "\n"
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_reads_as_that_of_sha256sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum("motley", b""), format!("{empty}  motley\n"));
    }

    #[test]
    fn the_release_is_named_by_version_and_target() {
        let facts = Facts::read().unwrap();
        assert!(facts.version.starts_with(|c: char| c.is_ascii_digit()), "{}", facts.version);
        assert!(facts.host.contains('-'), "{}", facts.host);
    }
}
