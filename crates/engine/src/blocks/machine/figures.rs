//! What an executor did, and why it could not go on. Data only.

use super::units::UnitFailed;
use motley_cost::Nanos;
use motley_sched::LoadLost;
use motley_sched::scheduler::Counts;

/// Sums since the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineFigures {
    pub blocks: u64,
    /// (token, expert) pairs routed; each is computed once, or its block was given up.
    pub routed_pairs: u64,
    /// Pairs computed on devices.
    pub device_pairs: u64,
    /// Pairs computed on the CPU.
    pub cpu_pairs: u64,
    /// Launches on devices, each with one read-back.
    pub launches: u64,
    /// Copies that a routed expert waited for.
    pub demanded_copies: u64,
    /// Of them never computed from: a failed or given-up block leaves some.
    pub demanded_unused: u64,
    /// Copies on a guess.
    pub guessed_copies: u64,
    /// Of them never computed from before they had to go.
    pub guessed_unused: u64,
    /// Time devices computed.
    pub devices_busy: Nanos,
    /// Time the CPU computed.
    pub cpu_busy: Nanos,
    /// Time links to devices copied.
    pub links_busy: Nanos,
    /// Time the driver had nothing to compute and waited.
    pub stalled: Nanos,
    /// What the scheduler counted.
    pub counts: Counts,
}

/// Why a block could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A unit failed while it computed; its rows are not to be had.
    #[error("{unit} failed: {reason}")]
    Unit { unit: &'static str, reason: UnitFailed },
    /// An expert could not be read.
    #[error("{0}")]
    Read(String),
    /// An expert could not be brought over, and nobody can compute it where it is.
    #[error(transparent)]
    Lost(#[from] LoadLost),
    /// A thread ended by a panic.
    #[error("the thread of {0} has ended: a bug, please report")]
    ThreadEnded(&'static str),
    /// The scheduler waits for nothing and is not done: a strategy's defect.
    #[error("deadlock in layer {layer}: a bug, please report")]
    Deadlock { layer: u16 },
}
