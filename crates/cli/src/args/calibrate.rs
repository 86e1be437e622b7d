//! What `motley doctor` and `motley calibrate` take.

use super::wishes::{TrustArgs, Wishes};
use clap::Args;
use std::path::PathBuf;

/// `motley doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Model or folder whose disk is looked at (default: the current folder)
    pub(crate) path: Option<PathBuf>,
}

/// `motley calibrate`.
#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// GGUF file: its disk is measured, or its routing recorded with --text
    pub(crate) model: Option<PathBuf>,
    /// Record the model's routing over these texts instead of measuring the machine
    #[arg(long, num_args = 1.., value_name = "FILE", requires = "model")]
    pub(crate) text: Vec<PathBuf>,
    /// Most tokens read of each text
    #[arg(long, default_value_t = 4096, value_name = "TOKENS")]
    pub(crate) read: usize,
    /// Tokens decoded after each piece of text
    #[arg(long, default_value_t = 32, value_name = "TOKENS")]
    pub(crate) decode: usize,
    /// File to read when measuring the disk, or folder to make one in for the moment
    #[arg(long, value_name = "PATH")]
    pub(crate) disk: Option<PathBuf>,
    /// Time for measuring the machine
    #[arg(long, default_value_t = 45, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) seconds: u32,
    /// Where to write (default: a new file in the folder for settings)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wishes: Wishes,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}
