//! What `motley bench` takes.

use super::wishes::LoadArgs;
use super::worker::WorkersArgs;
use crate::npu::PairsArgs;
use clap::Args;
use std::path::PathBuf;

/// `motley bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// GGUF file (any part of a split one), or a name as `motley pull` takes
    pub(crate) model: PathBuf,
    /// Pairs of runs, bare engine and Motley
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) pairs: u32,
    /// Prompt tokens per run
    #[arg(long, default_value_t = 512, value_name = "TOKENS")]
    pub(crate) prefill: usize,
    /// Decoded tokens per run
    #[arg(long, default_value_t = 64, value_name = "TOKENS")]
    pub(crate) decode: usize,
    /// Streams decoded together, beside one alone; 0 for none
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(crate) streams: u32,
    /// Measurements inside one run; the best counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
    /// Measure decode beside N niced busy programs instead, with and without yielding cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) neighbours: Option<u32>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) workers: WorkersArgs,
    #[command(flatten)]
    pub(crate) device: PairsArgs,
}
