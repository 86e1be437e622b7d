//! `motley completions`: what a shell needs to complete commands and flags, on stdout.

use crate::args::{Completions, Motley};
use anyhow::Result;
use clap::CommandFactory;
use std::io::Write;

/// Runs the command.
pub(crate) fn run(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Motley::command(), "motley", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
