//! What `motley env` takes.

use clap::Args;
use std::path::PathBuf;

/// `motley env`.
#[derive(Debug, Args)]
pub(crate) struct Env {
    /// The program that runs llama.cpp (llama-server), or a folder that has its libraries
    /// (node_modules/@node-llama-cpp/linux-x64)
    pub(crate) host: PathBuf,
    /// The drop-in library (default: libggml_motley.so beside this program, or in ../lib/motley)
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}
