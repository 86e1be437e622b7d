//! What a worker says of itself: which experts it computes, how it is, what it has done. gRPC over
//! HTTP/2 on the port of the rows, because whoever watches machines speaks it already; rows do not
//! travel here.
//!
//! * `serve`: the worker's end.
//! * [`client`]: the head's end.
//!
//! The schema is `proto/worker.proto`.

pub mod client;
pub(crate) mod serve;
#[cfg(test)]
mod tests;

use std::ops::Range;

/// Bytes of a worker's build.
pub const MAX_BUILD_BYTES: usize = 256;
/// Layers of one worker.
pub const MAX_LAYERS: usize = 1024;

/// Written from the schema; `tests/proto.rs` compares.
#[allow(
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::use_self,
    unreachable_pub,
    reason = "written by a generator"
)]
mod schema {
    include!("../../proto/motley.worker.v1.inc");
}

/// What a worker answers about itself. Asked on the thread of each connection, at any time, and
/// expected to answer at once.
pub trait Control: Send + Sync {
    /// What it computes.
    fn offer(&self) -> Offer;
    /// What it has done since it started.
    fn figures(&self) -> WorkerFigures;
    /// Whether it would compute rows now.
    fn is_serving(&self) -> bool;
}

/// What a worker computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Hash of the model's header.
    pub model: [u8; 32],
    /// Version and features of the CPU, in words; at most [`MAX_BUILD_BYTES`].
    pub build: String,
    /// Layers it computes, at most [`MAX_LAYERS`] and at least one.
    pub layers: Vec<u16>,
    /// Experts of each, at least one.
    pub experts: Range<u16>,
    /// Experts it has room for in memory; the others are read from its disk.
    pub slots: u32,
}

/// What a worker has done since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerFigures {
    /// Requests for rows, and rows in them.
    pub requests: u64,
    pub rows: u64,
    /// Requests that were refused or failed.
    pub failed: u64,
    /// Time spent computing, in microseconds.
    pub compute_us: u64,
    /// Bytes of experts read from disk.
    pub disk_bytes: u64,
    /// Heads that are connected for rows now.
    pub heads: u64,
}

/// Why what a worker says of itself cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    #[error("a hash of {0} bytes for the model, which has 32")]
    Hash(usize),
    #[error("another model than it was asked for")]
    OtherModel,
    #[error("a build of {bytes} bytes, allowed are {MAX_BUILD_BYTES}")]
    Build { bytes: usize },
    #[error("{count} layers, allowed are 1 to {MAX_LAYERS}")]
    Layers { count: usize },
    #[error("layer {0}, which does not fit 16 bits")]
    Layer(u32),
    #[error("experts from {first} to before {end}")]
    Experts { first: u32, end: u32 },
}

impl TryFrom<schema::Offer> for Offer {
    type Error = OfferError;

    /// Whoever says it may say anything.
    fn try_from(said: schema::Offer) -> Result<Self, OfferError> {
        let schema::Offer { model, build, layers, first_expert, end_expert, slots } = said;
        if build.len() > MAX_BUILD_BYTES {
            return Err(OfferError::Build { bytes: build.len() });
        }
        if !(1..=MAX_LAYERS).contains(&layers.len()) {
            return Err(OfferError::Layers { count: layers.len() });
        }
        let layer = |layer| u16::try_from(layer).map_err(|_| OfferError::Layer(layer));
        Ok(Self {
            model: hash(&model)?,
            build,
            layers: layers.into_iter().map(layer).collect::<Result<_, _>>()?,
            experts: experts(first_expert, end_expert)?,
            slots,
        })
    }
}

fn hash(bytes: &[u8]) -> Result<[u8; 32], OfferError> {
    bytes.try_into().map_err(|_| OfferError::Hash(bytes.len()))
}

fn experts(first: u32, end: u32) -> Result<Range<u16>, OfferError> {
    match (u16::try_from(first), u16::try_from(end)) {
        (Ok(first), Ok(end)) if first < end => Ok(first..end),
        _ => Err(OfferError::Experts { first, end }),
    }
}

impl From<Offer> for schema::Offer {
    fn from(offer: Offer) -> Self {
        let Offer { model, build, layers, experts, slots } = offer;
        Self {
            model: model.into(),
            build,
            layers: layers.into_iter().map(u32::from).collect(),
            first_expert: experts.start.into(),
            end_expert: experts.end.into(),
            slots,
        }
    }
}

impl From<schema::FiguresResponse> for WorkerFigures {
    fn from(said: schema::FiguresResponse) -> Self {
        let schema::FiguresResponse { requests, rows, failed, compute_us, disk_bytes, heads } =
            said;
        Self { requests, rows, failed, compute_us, disk_bytes, heads }
    }
}

impl From<WorkerFigures> for schema::FiguresResponse {
    fn from(figures: WorkerFigures) -> Self {
        let WorkerFigures { requests, rows, failed, compute_us, disk_bytes, heads } = figures;
        Self { requests, rows, failed, compute_us, disk_bytes, heads }
    }
}
