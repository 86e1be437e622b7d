//! What `motley explain` takes.

use clap::Args;
use std::path::PathBuf;

/// `motley explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// `last`, or a record written by `run --stats`
    #[arg(default_value = "last", value_name = "last|RUN.json")]
    pub(crate) run: PathBuf,
    /// The run's routing, to replay it under other circumstances (`last` brings its own)
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write both as a picture too
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,
}
