//! The model's files as the read queue and its backends see them: the system's, or those of a
//! simulation. Keeps nothing; `files` is the real one.

use std::io;
use std::path::Path;

/// Files of a model, by the model's file indexes.
pub trait Disk: Send + Sync {
    /// What is known of file `index` since it was opened; `None` when there is none.
    fn facts(&self, index: usize) -> Option<FileFacts<'_>>;

    /// Reads into all of `memory` from `offset` on, as `pread`; fewer bytes at the end of the
    /// file. With `direct`, past the page cache: then offset, length and address are aligned.
    fn read_at(
        &self,
        index: usize,
        direct: bool,
        offset: u64,
        memory: &mut [u8],
    ) -> io::Result<usize>;

    /// Whether file `index` still is what was opened.
    fn unchanged(&self, index: usize) -> bool;

    /// Lets the page cache drop a range of file `index`.
    fn forget(&self, index: usize, offset: u64, len_bytes: usize);

    /// The alignment that suits all files, a power of two; 1 if none is read directly.
    fn alignment(&self) -> usize {
        let facts = (0..).map_while(|index| self.facts(index));
        let wanted = facts.filter_map(|facts| facts.direct);
        wanted.map(|direct| direct.offset.max(direct.memory)).max().unwrap_or(1)
    }

    /// Where in a slot the bytes of expert slices should begin so that reads land in place: the
    /// same for all experts of a tensor when its stride is a multiple of the alignment, else 0
    /// (then reads are copied). `base_offset` and `stride_bytes` as in `ExpertTensor`.
    fn landing(&self, base_offset: u64, stride_bytes: u64) -> usize {
        let alignment = self.alignment() as u64;
        match stride_bytes.is_multiple_of(alignment) {
            true => (base_offset % alignment) as usize,
            false => 0,
        }
    }
}

/// What is known of a file since it was opened.
#[derive(Debug, Clone, Copy)]
pub struct FileFacts<'a> {
    pub path: &'a Path,
    pub len_bytes: u64,
    /// How direct reads must be aligned; `None` where there are none.
    pub direct: Option<Alignment>,
}

/// Largest alignment taken at its word; beyond it the file is read buffered.
pub(crate) const ALIGNMENT_MAX_BYTES: usize = 64 << 10;

/// What direct reads must be multiples of, in bytes; powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Of memory addresses.
    pub memory: usize,
    /// Of offsets and lengths.
    pub offset: usize,
}
