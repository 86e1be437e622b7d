//! Published results beside ours: for every figure the paper's value, ours, the difference, and
//! what had to be assumed. Returns documents; whoever asked writes the files.
//!
//! Modules in reading order:
//! - [`document`]: figures, tables and pictures of one reproduction.
//! - [`bars`]: grouped bars as SVG.
//! - [`gpu_ndp`]: one GPU and several near-data units (G6).
//! - [`hybrimoe`]: CPU and GPU with timelines, prefetch and score-aware cache (H5).

pub mod bars;
pub mod document;
pub mod gpu_ndp;
pub mod hybrimoe;

pub use document::{Document, Figure, Picture};

/// Every reproduction there is.
pub fn all() -> Result<Vec<Document>, ReproduceError> {
    Ok(vec![hybrimoe::document()?, gpu_ndp::document()?])
}

/// The part of a ready machine, or which one is missing.
fn lacks<T>(
    machine: &motley_machine::Machine,
    part: Option<T>,
    item: &'static str,
) -> Result<T, ReproduceError> {
    part.ok_or_else(|| ReproduceError::Machine { machine: machine.name.clone(), item })
}

/// Why a reproduction could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// A ready machine lacks a device or link of the source.
    #[error("machine {machine} has no {item}")]
    Machine {
        /// The machine.
        machine: String,
        /// What it lacks.
        item: &'static str,
    },
    /// A ready machine could not be read.
    #[error(transparent)]
    MachineFile(#[from] motley_machine::MachineError),
    /// Made routing is out of bounds.
    #[error("made routing: {0:?}")]
    Routing(motley_trace::record::Problem),
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] motley_trace::TraceError),
    /// A drive ended early.
    #[error(transparent)]
    Drive(#[from] crate::drive::DriveError),
    /// A picture could not be drawn.
    #[error("picture: {0}")]
    Picture(String),
    /// A stretch of a drive could not be drawn.
    #[error(transparent)]
    Gantt(#[from] crate::gantt::GanttError),
}

impl From<motley_trace::record::Problem> for ReproduceError {
    fn from(problem: motley_trace::record::Problem) -> Self {
        Self::Routing(problem)
    }
}
