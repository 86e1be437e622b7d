//! What `motley pull`, `rm` and `show` take.

use super::wishes::Wishes;
use clap::Args;
use std::path::PathBuf;

/// `motley pull`.
#[derive(Debug, Args)]
pub(crate) struct Pull {
    /// owner/repo:QUANT on the hub (without QUANT: the one that fits this machine), or
    /// https://…/file.gguf
    pub(crate) name: PathBuf,
    /// Say how it would run here, and stop before any weights come
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Fetch it even if it does not run here
    #[arg(long)]
    pub(crate) anyway: bool,
    /// SHA-256 of the file behind a URL (of each part, in order); the hub names its own
    #[arg(long, value_name = "HEX", value_delimiter = ',')]
    pub(crate) sha256: Vec<String>,
    #[command(flatten)]
    pub(crate) wishes: Wishes,
}

/// `motley rm`.
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// owner/repo:QUANT, owner/repo (every quantisation), or a URL
    pub(crate) name: PathBuf,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// `motley show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Name, URL or path of a model; of one that is not downloaded only headers are fetched
    pub(crate) name: PathBuf,
    /// KV cache length the memory figures are for, in tokens
    #[arg(long, default_value_t = 4096)]
    pub(crate) context: u32,
}
