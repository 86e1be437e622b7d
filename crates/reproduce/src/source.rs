//! The sources by name: what each is about, and who makes its figures and its page.

use crate::document::{Assumed, Document, Figure};
use crate::error::ReproduceError;
use crate::{aecs, gpu_ndp, hosts, hybrimoe, machines, npumoe, tiers};

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
    /// No paper: disk, RAM and GPUs at once.
    Tiers,
    /// No paper: a head and its workers.
    Hosts,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Hybrimoe,
        Self::GpuNdp,
        Self::Aecs,
        Self::Npumoe,
        Self::Machines,
        Self::Tiers,
        Self::Hosts,
    ];

    /// Name of its document, and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hybrimoe => hybrimoe::NAME,
            Self::GpuNdp => gpu_ndp::NAME,
            Self::Aecs => aecs::NAME,
            Self::Npumoe => npumoe::NAME,
            Self::Machines => machines::NAME,
            Self::Tiers => tiers::NAME,
            Self::Hosts => hosts::NAME,
        }
    }

    /// What ours is compared with.
    pub fn compared_with(self) -> &'static str {
        if matches!(self, Self::Machines | Self::Tiers | Self::Hosts) { "Goal" } else { "Paper" }
    }

    /// One line on what was published.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hybrimoe => "hybrid CPU and GPU (H5): speed-up over the kTransformers policy",
            Self::GpuNdp => "one GPU and near-data units (G6): speed-up over MoNDE",
            Self::Aecs => "core selection on seven phones (A7): choices and how sure they are",
            Self::Npumoe => "prefill on a static-graph device (N9): tiers, groups, ladder",
            Self::Machines => "three machines, three models: speed-up over pinned experts",
            Self::Tiers => "disk, RAM and GPUs at once: speed-up over the best two memories",
            Self::Hosts => "a head and its workers: speed-up over its disk and over whole layers",
        }
    }

    /// The figures under the assumptions the document begins with; takes seconds, minutes for `tiers`.
    pub fn figures(self) -> Result<Vec<Figure>, ReproduceError> {
        match self {
            Self::Hybrimoe => hybrimoe::figures(hybrimoe::ASSUMED),
            Self::GpuNdp => gpu_ndp::figures(gpu_ndp::ASSUMED),
            Self::Aecs => aecs::figures(aecs::ASSUMED),
            Self::Npumoe => npumoe::figures(npumoe::ASSUMED),
            Self::Machines => machines::figures(machines::ASSUMED),
            Self::Tiers => tiers::figures(machines::ASSUMED),
            Self::Hosts => hosts::figures(hosts::ASSUMED),
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
            Self::Tiers => tiers::assumed(),
            Self::Hosts => hosts::assumed(),
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
            Self::Tiers => tiers::document(&tiers::rows(machines::ASSUMED)?, &[]),
            Self::Hosts => hosts::document(&hosts::rows(hosts::ASSUMED, &hosts::Wanted::WHOLE)?),
        }
    }
}
