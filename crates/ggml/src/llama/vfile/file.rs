//! The virtual file itself: where each of its bytes comes from, and what was read. Knows no
//! C streams.

use super::pread::pread;
use motley_model::gguf::{Piece, VirtualLayout};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A model as one file, made of real files and a header of our own.
#[derive(Debug)]
pub struct VirtualFile {
    layout: VirtualLayout,
    files: Vec<File>,
    /// By tensor index: whether its bytes are left out.
    skipped: Vec<bool>,
    position: u64,
    counts: Arc<ReadCounts>,
    /// Whether the page cache drops the files afterwards.
    forgets: bool,
}

/// What was read from the real files, and what was left out.
#[derive(Debug, Default)]
pub struct ReadCounts {
    read: AtomicU64,
    skipped: AtomicU64,
}

/// What a read came to.
pub(super) enum Delivered {
    /// So many bytes were written; none at the end.
    Bytes(usize),
    /// So many bytes of a skipped tensor, of which none was written.
    Skipped(usize),
}

impl Delivered {
    /// How far the position moved.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(len) | Self::Skipped(len) => *len,
        }
    }
}

impl ReadCounts {
    /// Tensor bytes read from disk.
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Tensor bytes that were asked for and not read.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped.load(Relaxed)
    }
}

impl VirtualFile {
    /// `files` in the order the layout counts them; `skipped[tensor]` leaves a
    /// tensor's bytes unread (missing entries are read).
    pub fn new(layout: VirtualLayout, files: Vec<File>, skipped: Vec<bool>) -> Self {
        Self { layout, files, skipped, position: 0, counts: Arc::default(), forgets: false }
    }

    /// Has the page cache drop the files in the end: what was read is in memory then, and a second
    /// copy there would count against a budget (M3).
    pub fn forgetting(mut self) -> Self {
        self.forgets = true;
        self
    }

    /// Counters that outlive the file.
    pub fn counts(&self) -> Arc<ReadCounts> {
        Arc::clone(&self.counts)
    }

    /// Puts up to `len` bytes from the current position at `out` and moves on.
    /// Bytes of skipped tensors count as delivered and leave `out` as it was.
    ///
    /// # Safety
    /// `out` must be valid for writing `len` bytes.
    pub(super) unsafe fn read(&mut self, out: *mut u8, len: usize) -> io::Result<Delivered> {
        let piece = self.layout.piece_at(self.position);
        let len = len.min(usize::try_from(piece.len()).unwrap_or(usize::MAX));
        // SAFETY: every arm writes at most `len` bytes, and `out` has room (caller).
        let delivered = unsafe {
            match piece {
                Piece::End => Delivered::Bytes(0),
                Piece::Header(bytes) => {
                    out.copy_from_nonoverlapping(bytes.as_ptr(), len);
                    Delivered::Bytes(len)
                }
                Piece::Padding(_) => {
                    out.write_bytes(0, len);
                    Delivered::Bytes(len)
                }
                Piece::Data { extent, .. } if self.is_skipped(extent.tensor) => {
                    self.counts.skipped.fetch_add(len as u64, Relaxed);
                    Delivered::Skipped(len)
                }
                Piece::Data { extent, skip } => {
                    let got = pread(&self.files[extent.file], out, len, extent.file_offset + skip)?;
                    self.counts.read.fetch_add(got as u64, Relaxed);
                    Delivered::Bytes(got)
                }
            }
        };
        self.position += delivered.len() as u64;
        Ok(delivered)
    }

    /// Moves to `offset` from `origin` (start, here, end); the new position, or
    /// `None` when it would be before the start.
    pub(super) fn seek(&mut self, offset: i64, origin: libc::c_int) -> Option<u64> {
        let base = match origin {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => self.position,
            libc::SEEK_END => self.layout.len,
            _ => return None,
        };
        self.position = base.checked_add_signed(offset)?;
        Some(self.position)
    }

    fn is_skipped(&self, tensor: usize) -> bool {
        self.skipped.get(tensor).copied().unwrap_or(false)
    }
}

impl Drop for VirtualFile {
    fn drop(&mut self) {
        if self.forgets {
            self.files.iter().for_each(motley_store::forget_cached);
        }
    }
}
