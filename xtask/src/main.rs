//! The command `cargo xtask`: it reads the command line and calls the library.
#![forbid(unsafe_code)]

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use xtask::{tidy, workspace_root};

/// Automation of the motley repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the house rules that no compiler knows.
    Tidy,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Tidy => run_tidy(),
    }
}

fn run_tidy() -> Result<()> {
    let tree = tidy::Tree::of_git(workspace_root())?;
    let findings = tidy::check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("tidy: {} files", tree.files().len()),
        count => bail!("{count} findings"),
    }
    Ok(())
}
