//! Why a reproduction could not be made. Says what is missing; makes nothing.

use motley_machine::{Machine, MachineError};
use motley_sim::drive::DriveError;
use motley_sim::gantt::GanttError;
use motley_trace::TraceError;
use motley_trace::record::Problem;

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
    /// The same, for the costs of its experts.
    #[error(transparent)]
    Regime(#[from] motley_sched::regime::RegimeError),
    /// A machine and its workers could not be put together.
    #[error(transparent)]
    Setup(#[from] motley_sim::setup::SetupError),
    /// A ready machine could not be read.
    #[error(transparent)]
    MachineFile(#[from] MachineError),
    /// Parameters of synthetic routing are out of bounds.
    #[error("synthetic routing: {0:?}")]
    Routing(Problem),
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A drive ended early.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// A picture could not be drawn.
    #[error("picture: {0}")]
    Picture(String),
    /// A stretch of a drive could not be drawn.
    #[error(transparent)]
    Gantt(#[from] GanttError),
}

impl From<Problem> for ReproduceError {
    fn from(problem: Problem) -> Self {
        Self::Routing(problem)
    }
}

/// The part of a ready machine, or which one is missing.
pub(crate) fn lacks<T>(
    machine: &Machine,
    part: Option<T>,
    item: &'static str,
) -> Result<T, ReproduceError> {
    part.ok_or_else(|| ReproduceError::Machine { machine: machine.name.clone(), item })
}
