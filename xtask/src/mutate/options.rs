//! What is tried, and in which ways.

use serde::Serialize;
use std::ops::Range;
use std::path::PathBuf;

/// What to do.
#[derive(Debug, Clone)]
pub struct Mutations {
    /// The program under test.
    pub motley: PathBuf,
    /// Numbers of the mutations: each follows from the seed and its number alone.
    pub numbers: Range<usize>,
    pub seed: u64,
    /// Ways of loading each mutation is tried with.
    pub paths: Vec<LoadingPath>,
    /// Trials at a time.
    pub jobs: usize,
    /// Flags for `motley run` beside those of the trial.
    pub flags: Vec<String>,
}

/// How weights come into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LoadingPath {
    /// llama.cpp sees the mapped file.
    Mapped,
    /// Experts are read as tokens need them.
    OnDemand,
}

impl LoadingPath {
    /// Its value of `--loading`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mapped => "mapped",
            Self::OnDemand => "on-demand",
        }
    }
}
