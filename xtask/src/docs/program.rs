//! `motley` as a process: what it says of itself, the same on every machine.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Columns help is wrapped to: what fits a page of the book.
const COLUMNS: &str = "80";

/// A binary that runs here.
pub(super) struct Program {
    path: PathBuf,
}

impl Program {
    /// The one named, or the one cargo builds from this tree without features.
    pub(super) fn find(named: Option<&Path>) -> Result<Self> {
        if let Some(path) = named {
            ensure!(path.is_file(), "no program at {} (--motley)", path.display());
            return Ok(Self { path: path.to_owned() });
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // With the workspace's features, so that what a build of all of it made is used again.
        let args = ["build", "--release", "--locked", "--quiet", "--workspace", "--bin", "motley"];
        let status = Command::new(cargo).args(args).status().context("cargo")?;
        ensure!(status.success(), "motley does not build");
        let path = std::env::current_exe()?.with_file_name("motley");
        ensure!(path.is_file(), "no program at {}: name it by --motley", path.display());
        Ok(Self { path })
    }

    /// What it prints when asked for help on a command (`[]`: on itself).
    pub(super) fn help(&self, command: &[String]) -> Result<String> {
        self.ask(command.iter().map(String::as_str).chain(["--help"]))
    }

    /// The OpenAPI document of its server.
    pub(super) fn openapi(&self) -> Result<String> {
        self.ask(["openapi"])
    }

    /// Whether it takes such a command line; what it says where not. Nothing is run: `--help`
    /// comes last, and whatever stands before it is read first.
    pub(super) fn takes(&self, words: &[String]) -> Result<(), String> {
        let words = words.iter().map(String::as_str).chain(["--help"]);
        self.ask(words).map(drop).map_err(|error| format!("{error:#}"))
    }

    /// Without this machine's settings: help tells values of variables and of files.
    fn ask<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Result<String> {
        let output = Command::new(&self.path)
            .args(words)
            .env_clear()
            .env("COLUMNS", COLUMNS)
            .stdin(Stdio::null())
            .output()
            .with_context(|| self.path.display().to_string())?;
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next().unwrap_or("it says nothing").to_owned();
        ensure!(output.status.success(), "{first}");
        Ok(String::from_utf8(output.stdout)?)
    }
}
