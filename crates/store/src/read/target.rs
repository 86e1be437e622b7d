//! Where the bytes of one chunk land: straight in the slot, or in an aligned staging buffer
//! from which they are copied. The geometry both backends share.
//!
//! ```text
//!  file  ···|▒▒▒▒████████████▒▒|···     ▒ read because of alignment, █ wanted
//!           a   offset        b
//!  slot     [▒▒▒▒████████████▒▒]        in place: a slot with room on both sides, and
//!               target                  target ≡ offset (mod alignment)
//! ```

use std::io;
use std::ptr::NonNull;

use super::disk::{ALIGNMENT_MAX_BYTES, Alignment, Disk};
use super::error::ReadError;
use super::job::{CHUNK_BYTES_MAX, Chunk};
use crate::memory::{HugePages, Mapping};

/// Bytes of a staging buffer: the longest chunk with its aligned superset.
pub(crate) const STAGING_BYTES: usize = CHUNK_BYTES_MAX as usize + ALIGNMENT_MAX_BYTES;

/// Page-aligned memory for reads that cannot land in place; used pages stay.
pub(crate) struct Staging(Mapping);

impl Staging {
    pub(crate) fn new() -> io::Result<Self> {
        Mapping::reserve(STAGING_BYTES, HugePages::Refuse).map(Self)
    }
}

/// One system call to be made: `len_bytes` at `offset` into `memory`.
pub(crate) struct Target<'a> {
    disk: &'a dyn Disk,
    pub(crate) file: usize,
    pub(crate) direct: bool,
    pub(crate) offset: u64,
    pub(crate) len_bytes: usize,
    pub(crate) memory: NonNull<u8>,
    /// Bytes of `memory` before the wanted ones.
    lead_bytes: usize,
    /// Whether `memory` is the staging buffer.
    staged: bool,
}

/// How a read went.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) device_bytes: usize,
    pub(crate) copied: bool,
    pub(crate) error: Option<Shortfall>,
}

/// Why a read does not count.
#[derive(Debug)]
pub(crate) enum Shortfall {
    Io(io::Error),
    Short { got_bytes: usize },
}

/// The aligned range of the file around a chunk.
struct Superset {
    offset: u64,
    len_bytes: usize,
    /// Bytes of it before the chunk.
    lead_bytes: usize,
    /// Whether it can be read straight around the chunk's target.
    in_place: bool,
}

impl Superset {
    fn of(chunk: &Chunk, wanted: Alignment) -> Self {
        let alignment = wanted.offset as u64;
        let offset = chunk.offset - chunk.offset % alignment;
        let end = (chunk.offset + chunk.len_bytes as u64).next_multiple_of(alignment);
        let lead_bytes = (chunk.offset - offset) as usize;
        let len_bytes = (end - offset) as usize;
        let address = (chunk.target.as_ptr() as usize).wrapping_sub(lead_bytes);
        let in_place = lead_bytes <= chunk.room_before
            && len_bytes - lead_bytes <= chunk.room_after
            && address.is_multiple_of(wanted.memory);
        Self { offset, len_bytes, lead_bytes, in_place }
    }
}

impl<'a> Target<'a> {
    /// For `chunk`, with `staging` for what cannot land in place. A retry is buffered, in case it
    /// is directness that the file has come to refuse.
    pub(crate) fn new(disk: &'a dyn Disk, chunk: &Chunk, staging: &Staging) -> Self {
        let facts = disk.facts(chunk.file).expect("the queue checked the file's number");
        match facts.direct {
            Some(wanted) if chunk.attempt == 0 => Self::direct(disk, wanted, chunk, staging),
            _ => Self {
                disk,
                file: chunk.file,
                direct: false,
                offset: chunk.offset,
                len_bytes: chunk.len_bytes,
                memory: chunk.target,
                lead_bytes: 0,
                staged: false,
            },
        }
    }

    fn direct(disk: &'a dyn Disk, wanted: Alignment, chunk: &Chunk, staging: &Staging) -> Self {
        let Superset { offset, len_bytes, lead_bytes, in_place } = Superset::of(chunk, wanted);
        let memory = if in_place {
            // SAFETY: `lead_bytes` bytes of the same slot lie before the target.
            unsafe { chunk.target.sub(lead_bytes) }
        } else {
            debug_assert!(len_bytes <= STAGING_BYTES);
            staging.0.base()
        };
        let (file, staged) = (chunk.file, !in_place);
        Self { disk, file, direct: true, offset, len_bytes, memory, lead_bytes, staged }
    }

    /// Reads on this thread.
    pub(crate) fn read(&self) -> io::Result<usize> {
        // SAFETY: `memory` is `len_bytes` of the leased slot this chunk may overwrite, or of the
        // staging buffer of whoever holds the chunk; both are initialised and touched by nobody
        // else meanwhile.
        let memory =
            unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.len_bytes) };
        self.disk.read_at(self.file, self.direct, self.offset, memory)
    }

    /// Judges what the system call returned, and brings the bytes to where they belong.
    pub(crate) fn land(&self, chunk: &Chunk, result: io::Result<usize>) -> Landed {
        if !self.direct {
            self.disk.forget(self.file, chunk.offset, chunk.len_bytes);
        }
        let device_bytes = *result.as_ref().unwrap_or(&0);
        let error = match result {
            Err(error) => Some(Shortfall::Io(error)),
            Ok(got) if got < self.lead_bytes + chunk.len_bytes => {
                Some(Shortfall::Short { got_bytes: got.saturating_sub(self.lead_bytes) })
            }
            Ok(_) => None,
        };
        let copied = self.staged && error.is_none();
        if copied {
            // SAFETY: the staging buffer holds lead and chunk, as just checked; the target has
            // room for the chunk; a slot and a staging buffer are different mappings.
            unsafe {
                let from = self.memory.add(self.lead_bytes);
                chunk.target.copy_from_nonoverlapping(from, chunk.len_bytes);
            }
        }
        Landed { device_bytes, copied, error }
    }
}

impl Landed {
    pub(crate) fn into_result(self, chunk: &Chunk, disk: &dyn Disk) -> Result<(), ReadError> {
        let Some(shortfall) = self.error else { return Ok(()) };
        let path = disk.facts(chunk.file).map(|file| file.path.to_owned()).unwrap_or_default();
        let (offset, len_bytes) = (chunk.offset, chunk.len_bytes);
        Err(match shortfall {
            Shortfall::Io(source) => ReadError::Io { path, offset, len_bytes, source },
            Shortfall::Short { got_bytes } => {
                ReadError::Short { path, offset, len_bytes, got_bytes }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Arena, ArenaSpec};
    use crate::read::job::Job;
    use crate::read::{Piece, Priority, Request, Tag};
    use motley_model::{FileRange, Matrix, TensorPart};
    use proptest::prelude::*;
    use std::ops::Range;

    const SLOT_BYTES: usize = 4 << 20;

    fn job(arena: &Arena, offset: u64, len_bytes: usize, at_bytes: usize) -> Job {
        let range = FileRange { file: 0, offset, len_bytes: len_bytes as u64 };
        let slot = arena.lease().expect("one slot");
        let piece = Piece { matrix: Matrix::Gate, part: TensorPart::Weight, range, slot, at_bytes };
        Job::new(Request { tag: Tag(0), priority: Priority::Demand, pieces: vec![piece] })
    }

    /// Ranges that follow each other without a gap or an overlap.
    fn assert_apart(ranges: &[Range<usize>]) -> Result<(), TestCaseError> {
        for pair in ranges.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start, "{:?} and {:?}", pair[0], pair[1]);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn chunks_tile_a_piece_and_their_supersets_stay_apart_and_inside_the_slot(
            offset in 0..1u64 << 40,
            len_bytes in 1..SLOT_BYTES,
            skew in 0..5usize,
            place in 0..3usize,
            (memory_bits, offset_bits) in (2..17u32, 9..17u32),
        ) {
            let (memory, alignment) = (1 << memory_bits, 1usize << offset_bits);
            let arena = Arena::new(ArenaSpec::for_matrix(SLOT_BYTES, 1, 1)).expect("one slot");
            let lead = (offset % alignment as u64) as usize;
            let at = [lead + skew * 4, skew * 4, SLOT_BYTES][place].min(SLOT_BYTES - len_bytes);
            let base = arena.base().as_ptr() as usize;
            let mut job = job(&arena, offset, len_bytes, at);
            let (mut wanted, mut read, mut written) = (Vec::new(), Vec::new(), Vec::new());
            while let Some(chunk) = job.next_chunk(0) {
                let superset = Superset::of(&chunk, Alignment { memory, offset: alignment });
                let start = chunk.offset as usize;
                wanted.push(start..start + chunk.len_bytes);
                let start = superset.offset as usize;
                read.push(start..start + superset.len_bytes);
                prop_assert!((start | superset.len_bytes).is_multiple_of(alignment));
                prop_assert!(superset.len_bytes <= STAGING_BYTES);
                prop_assert_eq!(superset.offset + superset.lead_bytes as u64, chunk.offset);
                let target = chunk.target.as_ptr() as usize;
                prop_assert_eq!((target - base - at) as u64, chunk.offset - offset);
                if superset.in_place {
                    let start = target.wrapping_sub(superset.lead_bytes);
                    prop_assert_eq!(start % memory, 0);
                    written.push(start..start.wrapping_add(superset.len_bytes));
                } else {
                    written.push(target..target + chunk.len_bytes);
                }
            }
            prop_assert_eq!(wanted.iter().map(Range::len).sum::<usize>(), len_bytes);
            assert_apart(&wanted)?;
            assert_apart(&read)?;
            assert_apart(&written)?;
            for range in written {
                prop_assert!(range.start >= base && range.end <= base + SLOT_BYTES);
            }
        }
    }
}
