//! The parts a predicted pass is made of, and what can limit each. Data only.

use serde::{Deserialize, Serialize};

/// A part of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// What the time is for.
    pub what: Work,
    pub seconds: f64,
    pub bound_by: Resource,
}

/// Kinds of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Barriers, graph, sampling.
    Overhead,
    /// Weights every token uses.
    Dense,
    /// The output matrix, once a pass.
    Output,
    /// Keys and values.
    Attention,
    /// Routed experts.
    Experts,
    /// Waiting for the disk with nothing to compute.
    DiskWait,
}

/// What can be the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Memory bandwidth.
    Memory,
    /// Arithmetic.
    Arithmetic,
    /// The disk.
    Disk,
    /// Fixed costs.
    Overhead,
}

impl Resource {
    /// For sentences: "bound by …".
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory bandwidth",
            Self::Arithmetic => "arithmetic",
            Self::Disk => "the disk",
            Self::Overhead => "fixed costs",
        }
    }
}
