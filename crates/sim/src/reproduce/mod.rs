//! Published results beside ours: for every figure the paper's value, ours, the difference, and
//! what had to be assumed. Returns documents; whoever asked writes the files.
//!
//! Modules in reading order:
//! - [`document`]: figures, tables and pictures of one reproduction.
//! - [`bars`]: grouped bars as SVG.
//! - `stream`: one stream of tokens cut up for comparisons.
//! - [`gpu_ndp`]: one GPU and several near-data units (G6).
//! - [`hybrimoe`]: CPU and GPU with timelines, prefetch and score-aware cache (H5).
//! - [`aecs`]: energy-centred core selection on seven phones (A7).
//! - [`npumoe`]: prefill on a static-graph device, plan and costs (N9).
//! - [`machines`]: three machines and three models, beside two other systems' policies.

pub mod aecs;
pub mod bars;
pub mod document;
pub mod gpu_ndp;
pub mod hybrimoe;
pub mod machines;
pub mod npumoe;
mod stream;

pub use document::{Assumed, Document, Figure, Picture};

/// The sources there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// H5.
    Hybrimoe,
    /// G6.
    GpuNdp,
    /// A7.
    Aecs,
    /// N9.
    Npumoe,
    /// No paper: what to expect of three machines.
    Machines,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Hybrimoe, Self::GpuNdp, Self::Aecs, Self::Npumoe, Self::Machines];

    /// Name of its document, and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hybrimoe => hybrimoe::NAME,
            Self::GpuNdp => gpu_ndp::NAME,
            Self::Aecs => aecs::NAME,
            Self::Npumoe => npumoe::NAME,
            Self::Machines => machines::NAME,
        }
    }

    /// What ours is compared with.
    pub fn compared_with(self) -> &'static str {
        if self == Self::Machines { "Goal" } else { "Paper" }
    }

    /// One line on what was published.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hybrimoe => "hybrid CPU and GPU (H5): speed-up over the kTransformers policy",
            Self::GpuNdp => "one GPU and near-data units (G6): speed-up over MoNDE",
            Self::Aecs => "core selection on seven phones (A7): choices and how sure they are",
            Self::Npumoe => "prefill on a static-graph device (N9): tiers, groups, ladder",
            Self::Machines => "three machines, three models: speed-up over pinned experts",
        }
    }

    /// The figures under the assumptions the document begins with; takes seconds.
    pub fn figures(self) -> Result<Vec<Figure>, ReproduceError> {
        match self {
            Self::Hybrimoe => hybrimoe::figures(hybrimoe::ASSUMED),
            Self::GpuNdp => gpu_ndp::figures(gpu_ndp::Assumptions::default()),
            Self::Aecs => aecs::figures(aecs::ASSUMED),
            Self::Npumoe => npumoe::figures(npumoe::ASSUMED),
            Self::Machines => machines::figures(machines::ASSUMED),
        }
    }

    /// What the source leaves open, and what is taken instead.
    pub fn assumed(self) -> Vec<Assumed> {
        match self {
            Self::Hybrimoe => hybrimoe::assumed(),
            Self::GpuNdp => gpu_ndp::assumed(),
            Self::Aecs => aecs::assumed(),
            Self::Npumoe => npumoe::assumed(),
            Self::Machines => machines::assumed(),
        }
    }

    /// The whole document with every assumption swept and its pictures; takes a minute.
    pub fn document(self) -> Result<Document, ReproduceError> {
        match self {
            Self::Hybrimoe => hybrimoe::document(),
            Self::GpuNdp => gpu_ndp::document(),
            Self::Aecs => aecs::document(),
            Self::Npumoe => npumoe::document(),
            Self::Machines => {
                let rows = machines::rows(machines::ASSUMED, machines::Pairs::All)?;
                machines::document(&rows, &[])
            }
        }
    }
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
