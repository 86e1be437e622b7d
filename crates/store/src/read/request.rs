//! Requests and completions: leases go in with a request, and come out filled or inside the
//! error.

use motley_model::{ExpertTensor, FileRange, LayerExperts, Matrix, TensorPart};

use super::disk::Disk;
use super::error::ReadError;
use super::priority::Priority;
use crate::arena::SlotLease;
use crate::expert::{ExpertLease, FilledExpert};

/// The caller's name for a request; unique among those under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// One range of a file and the slot it goes into.
#[derive(Debug)]
pub struct Piece {
    pub matrix: Matrix,
    pub part: TensorPart,
    pub range: FileRange,
    /// Where to; the reader may overwrite the whole slot.
    pub slot: SlotLease,
    /// Where in the slot the data shall begin; [`Disk::landing`] says what avoids a copy.
    pub at_bytes: usize,
}

/// One expert to be read.
#[derive(Debug)]
pub struct Request {
    pub tag: Tag,
    pub priority: Priority,
    /// What is read; complete when all pieces are.
    pub pieces: Vec<Piece>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Completion {
    pub tag: Tag,
    /// The filled slots in the order of the pieces, or why not, with the leases.
    pub outcome: Result<FilledExpert, ReadFailed>,
}

/// A request that failed, with everything that was in it.
#[derive(Debug, thiserror::Error)]
#[error("reading an expert failed")]
pub struct ReadFailed {
    /// Why; the first of its pieces that failed.
    #[source]
    pub error: ReadError,
    /// The request; the bytes in its slots are undefined.
    pub request: Request,
}

/// Which expert to read, and how urgently.
#[derive(Debug, Clone, Copy)]
pub struct ExpertRead<'a> {
    pub tag: Tag,
    pub priority: Priority,
    /// Where the experts of its layer lie.
    pub layer: &'a LayerExperts,
    /// Its number in the layer.
    pub expert: u32,
}

impl Request {
    /// All ranges of one expert into `lease`, landing in place where `disk` allows it; gives the
    /// lease back if the layer has no such expert or the lease has other matrices.
    pub fn for_expert(
        read: ExpertRead<'_>,
        lease: ExpertLease,
        disk: &dyn Disk,
    ) -> Result<Self, ExpertLease> {
        let ranges: Vec<_> = read.layer.ranges(read.expert).collect();
        let fits = ranges.len() == lease.len()
            && ranges.iter().zip(lease.iter()).all(|((tensor, _), (matrix, part, _))| {
                (tensor.matrix, tensor.part) == (matrix, part)
            });
        if ranges.is_empty() || !fits {
            return Err(lease);
        }
        let piece = |((tensor, range), (matrix, part, slot)): ((&ExpertTensor, _), _)| Piece {
            matrix,
            part,
            range,
            slot,
            at_bytes: disk.landing(tensor.base_offset, tensor.stride_bytes),
        };
        let pieces = ranges.into_iter().zip(lease.into_slots()).map(piece).collect();
        Ok(Self { tag: read.tag, priority: read.priority, pieces })
    }
}
