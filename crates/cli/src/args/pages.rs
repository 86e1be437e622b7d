//! What the commands that write about the command line take: completions and man pages.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// `motley completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell they are for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// `motley man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder for one page per command; without it, the main page goes to stdout
    pub(crate) folder: Option<PathBuf>,
}
