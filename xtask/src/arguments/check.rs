//! Options of `cargo xtask check`.

use clap::Args;
use std::path::PathBuf;
use xtask::check::Checker;

/// `cargo xtask check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Which one
    pub(crate) checker: Checker,
    /// A file of reports, in which this one takes the place of the last of its checker
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}
