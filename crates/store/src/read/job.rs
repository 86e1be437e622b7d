//! A request under way: cut into chunks small enough to share the disk, complete when all of
//! them have landed. Owns the leases until then.

use std::ptr::NonNull;

use motley_model::FileRange;

use super::disk::ALIGNMENT_MAX_BYTES;
use super::error::ReadError;
use super::priority::Priority;
use super::request::{Completion, Piece, ReadFailed, Request, Tag};
use crate::arena::Filled;
use crate::expert::ExpertSlot;

/// Longest single read. Large enough to saturate a drive with two in flight, small enough that
/// a demand never waits long behind a prefetch.
pub const CHUNK_BYTES_MAX: u64 = 1 << 20;

/// Chunks of one piece meet at multiples of this, the largest alignment of a direct file.
const CUT_ALIGNMENT_BYTES: u64 = ALIGNMENT_MAX_BYTES as u64;

/// Identifies a job among those of one reader, never reused.
pub(crate) type JobId = u64;

/// One read to be done: a part of a piece, and the slot it goes into.
///
/// The pointers are into the slot whose lease the job holds; a job is not given back while one
/// of its chunks is out, and no two chunks of a job share a byte of file or memory, aligned
/// supersets included (cuts are at multiples of [`CUT_ALIGNMENT_BYTES`] of the file).
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) job: JobId,
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) len_bytes: usize,
    pub(crate) target: NonNull<u8>,
    /// Bytes of the same slot before `target` that may be overwritten.
    pub(crate) room_before: usize,
    /// Bytes of the same slot from `target` on that may be overwritten.
    pub(crate) room_after: usize,
    /// 0, then 1 for the only retry.
    pub(crate) attempt: u32,
}

// SAFETY: a chunk is the right to write into a leased slot; the lease is `Send` and stays with
// the job until the chunk has come back.
unsafe impl Send for Chunk {}

/// State of one request.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) tag: Tag,
    pub(crate) priority: Priority,
    pieces: Vec<Piece>,
    /// The next chunk begins in this piece, so many bytes into it.
    cursor: (usize, u64),
    out: u32,
    error: Option<ReadError>,
}

impl Job {
    /// Pieces without bytes are filled already.
    pub(crate) fn new(request: Request) -> Self {
        let Request { tag, priority, pieces } = request;
        Self { tag, priority, pieces, cursor: (0, 0), out: 0, error: None }
    }

    /// The next chunk to read, counted as being out.
    pub(crate) fn next_chunk(&mut self, id: JobId) -> Option<Chunk> {
        self.skip_empty();
        let (index, done) = self.cursor;
        let piece = self.pieces.get(index)?;
        let FileRange { file, offset, len_bytes } = piece.range;
        let start = offset + done;
        let cut = start.saturating_add(CHUNK_BYTES_MAX);
        let len = (cut - cut % CUT_ALIGNMENT_BYTES - start).min(len_bytes - done);
        let at = piece.at_bytes + done as usize;
        self.cursor.1 += len;
        self.out += 1;
        Some(Chunk {
            job: id,
            file,
            offset: start,
            len_bytes: len as usize,
            // SAFETY: the read queue checked that the range fits into the slot from `at_bytes` on.
            target: unsafe { piece.slot.start().add(at) },
            room_before: if done == 0 { at } else { 0 },
            room_after: piece.slot.arena().slot_bytes() - at,
            attempt: 0,
        })
    }

    /// A chunk came back for good.
    pub(crate) fn land(&mut self, outcome: Result<(), ReadError>) {
        debug_assert!(self.out > 0);
        self.out -= 1;
        if let Err(error) = outcome {
            self.fail(error);
        }
    }

    /// Nothing more of it will be read; the first error is kept.
    pub(crate) fn fail(&mut self, error: ReadError) {
        self.error.get_or_insert(error);
        self.cursor = (self.pieces.len(), 0);
    }

    /// As [`Job::fail`], with the reason behind the one that is known, if one is: a file that was
    /// cut reads short.
    pub(crate) fn fail_because(&mut self, error: ReadError) {
        self.error = Some(error);
        self.cursor = (self.pieces.len(), 0);
    }

    /// Whether no chunk is left to hand out.
    pub(crate) fn all_handed_out(&mut self) -> bool {
        self.skip_empty();
        self.cursor.0 >= self.pieces.len()
    }

    /// Whether every chunk has been handed out and come back.
    pub(crate) fn is_complete(&mut self) -> bool {
        self.out == 0 && self.all_handed_out()
    }

    /// Files it reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().map(|piece| piece.range.file)
    }

    /// Bytes it delivers.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.range.len_bytes).sum()
    }

    /// What the caller receives.
    pub(crate) fn into_completion(self) -> Completion {
        debug_assert_eq!(self.out, 0);
        let Self { tag, priority, pieces, error, .. } = self;
        let outcome = match error {
            None => Ok(filled(pieces)),
            Some(error) => Err(ReadFailed { error, request: Request { tag, priority, pieces } }),
        };
        Completion { tag, outcome }
    }

    fn skip_empty(&mut self) {
        while self.pieces.get(self.cursor.0).is_some_and(|p| self.cursor.1 >= p.range.len_bytes) {
            self.cursor = (self.cursor.0 + 1, 0);
        }
    }
}

fn filled(pieces: Vec<Piece>) -> ExpertSlot<Filled> {
    let fill = |piece: Piece| {
        let Piece { matrix, part, range, slot, at_bytes } = piece;
        let filled = slot.fill(at_bytes, range.len_bytes as usize);
        (matrix, part, filled.expect("the read queue checked that it fits"))
    };
    pieces.into_iter().map(fill).collect()
}
