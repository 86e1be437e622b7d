//! The model's files as the reader opens them: direct where the filesystem allows it,
//! buffered always, with the alignment each wants and the identity it had when opened.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use motley_model::OpenedFile;
use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags};

use super::disk::{Alignment, Disk, FileFacts};
use crate::memory::{HugePages, Mapping};

/// Alignment assumed where the kernel does not say (before Linux 6.1, or by the filesystem):
/// the largest logical block of a disk in use.
const ALIGNMENT_UNKNOWN_BYTES: usize = 4096;

/// Largest alignment taken at its word; beyond it the file is read buffered.
pub(crate) const ALIGNMENT_MAX_BYTES: usize = 64 << 10;

/// How files shall be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileMode {
    /// Past the page cache (`O_DIRECT`), file by file; buffered where that is refused.
    #[default]
    DirectIfPossible,
    /// Through the page cache, which drops each range after it was read.
    Buffered,
}

/// Why the files could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// A file cannot be opened or described.
    #[error("{}: cannot be opened for reading experts", path.display())]
    Open { path: PathBuf, source: io::Error },
}

/// Files in the model's order.
#[derive(Debug)]
pub struct Files {
    files: Vec<ModelFile>,
}

/// One file.
#[derive(Debug)]
struct ModelFile {
    path: PathBuf,
    /// `None` where the filesystem refuses.
    direct: Option<DirectFile>,
    buffered: File,
    identity: Identity,
}

/// A file opened with `O_DIRECT`.
#[derive(Debug)]
struct DirectFile {
    file: File,
    alignment: Alignment,
}

/// What changes when somebody writes into a file or truncates it. A file replaced by rename
/// keeps its bytes for us, and its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    len_bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Files {
    /// Opens all of `paths`, in the order of the model's file indexes.
    pub fn open<P: AsRef<Path>>(paths: &[P], mode: FileMode) -> Result<Self, FilesError> {
        let open = |path: &P| {
            let path = path.as_ref();
            ModelFile::open(path, mode)
                .map_err(|source| FilesError::Open { path: path.to_owned(), source })
        };
        Ok(Self { files: paths.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// As [`Files::open`], over files that are open already: no path decides what is read.
    pub fn of(opened: &[OpenedFile], mode: FileMode) -> Result<Self, FilesError> {
        let take = |file: &OpenedFile| {
            let path = file.path();
            let taken =
                file.file().try_clone().and_then(|handle| ModelFile::over(path, handle, mode));
            let source = match taken {
                Ok(_) if !file.is_unchanged() => io::Error::other("it changed while in use"),
                Ok(taken) => return Ok(taken),
                Err(source) => source,
            };
            Err(FilesError::Open { path: path.to_owned(), source })
        };
        Ok(Self { files: opened.iter().map(take).collect::<Result<_, _>>()? })
    }

    /// Whether every file is read past the page cache.
    pub fn all_direct(&self) -> bool {
        self.files.iter().all(|file| file.direct.is_some())
    }

    /// Bytes of file `index` when it was opened.
    pub fn len_bytes(&self, index: usize) -> Option<u64> {
        self.files.get(index).map(|file| file.identity.len_bytes)
    }

    /// File `index`, opened for direct reads or for buffered ones.
    pub(crate) fn descriptor(&self, index: usize, direct: bool) -> Option<&File> {
        let file = self.files.get(index)?;
        Some(file.direct.as_ref().filter(|_| direct).map_or(&file.buffered, |d| &d.file))
    }
}

impl Disk for Files {
    fn facts(&self, index: usize) -> Option<FileFacts<'_>> {
        let file = self.files.get(index)?;
        let direct = file.direct.as_ref().map(|direct| direct.alignment);
        Some(FileFacts { path: &file.path, len_bytes: file.identity.len_bytes, direct })
    }

    fn read_at(
        &self,
        index: usize,
        direct: bool,
        offset: u64,
        memory: &mut [u8],
    ) -> io::Result<usize> {
        let file = self.descriptor(index, direct).ok_or(io::ErrorKind::NotFound)?;
        loop {
            match file.read_at(memory, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn unchanged(&self, index: usize) -> bool {
        self.files.get(index).is_some_and(ModelFile::unchanged)
    }

    fn forget(&self, index: usize, offset: u64, len_bytes: usize) {
        if let Some(file) = self.files.get(index) {
            file.forget(offset, len_bytes);
        }
    }
}

/// Makes the page cache drop all of `file` that nobody has mapped or written: what was read
/// once and is kept elsewhere would count against a budget (M3).
pub fn forget_cached(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

impl ModelFile {
    fn open(path: &Path, mode: FileMode) -> io::Result<Self> {
        Self::over(path, File::open(path)?, mode)
    }

    fn over(path: &Path, buffered: File, mode: FileMode) -> io::Result<Self> {
        let identity = Identity::of(&buffered.metadata()?);
        // Experts lie where routing sends us: reading ahead would fetch bytes nobody asked for.
        let _ = rustix::fs::fadvise(&buffered, 0, None, Advice::Random);
        let direct = match mode {
            FileMode::DirectIfPossible => DirectFile::open(path, &buffered),
            FileMode::Buffered => None,
        };
        Ok(Self { path: path.to_owned(), direct, buffered, identity })
    }

    /// Whether the file still is what was opened. One system call of about a microsecond.
    fn unchanged(&self) -> bool {
        self.buffered.metadata().is_ok_and(|now| Identity::of(&now) == self.identity)
    }

    /// Makes the page cache drop a range, whole pages around it too.
    fn forget(&self, offset: u64, len_bytes: usize) {
        let page = rustix::param::page_size() as u64;
        let start = offset - offset % page;
        let end = (offset + len_bytes as u64).next_multiple_of(page);
        let len = std::num::NonZeroU64::new(end - start);
        let _ = rustix::fs::fadvise(&self.buffered, start, len, Advice::DontNeed);
    }
}

impl DirectFile {
    /// `None` where the filesystem refuses direct reads, at opening or at the first read.
    fn open(path: &Path, buffered: &File) -> Option<Self> {
        let alignment = direct_alignment(buffered)?;
        let flags = OFlags::DIRECT.bits() as i32;
        // The handle's own name on Linux: nobody can put another file there.
        let handle = PathBuf::from(format!("/proc/self/fd/{}", buffered.as_raw_fd()));
        let open = |path: &Path| OpenOptions::new().read(true).custom_flags(flags).open(path).ok();
        let file = open(&handle).or_else(|| open(path))?;
        let inode = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
        let same = inode(&file)? == inode(buffered)?;
        let direct = Self { file, alignment };
        (same && direct.can_read()).then_some(direct)
    }

    fn can_read(&self) -> bool {
        let len = self.alignment.offset.max(self.alignment.memory);
        let Ok(memory) = Mapping::reserve(len, HugePages::Refuse) else { return false };
        // SAFETY: a fresh mapping of `len` zeroed bytes that only this function knows.
        let buffer = unsafe { std::slice::from_raw_parts_mut(memory.base().as_ptr(), len) };
        self.file.read_at(buffer, 0).is_ok()
    }
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            len_bytes: metadata.len(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        }
    }
}

/// Alignment of memory and of offsets; `None` if the filesystem says that it has no direct reads.
fn direct_alignment(file: &File) -> Option<Alignment> {
    let unknown = Alignment { memory: ALIGNMENT_UNKNOWN_BYTES, offset: ALIGNMENT_UNKNOWN_BYTES };
    let wanted = StatxFlags::DIOALIGN;
    let Ok(found) = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted) else {
        return Some(unknown);
    };
    if found.stx_mask & wanted.bits() == 0 {
        return Some(unknown);
    }
    let (memory, offset) = (found.stx_dio_mem_align as usize, found.stx_dio_offset_align as usize);
    let usable = |a: usize| a.is_power_of_two() && a <= ALIGNMENT_MAX_BYTES;
    (usable(memory) && usable(offset)).then_some(Alignment { memory, offset })
}
