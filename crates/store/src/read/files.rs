//! The model's files as the reader opens them: direct where the filesystem allows it,
//! buffered always, with the alignment each wants and the identity it had when opened.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use motley_model::{FileIdentity, OpenedFile, read_at};

use super::disk::{Alignment, Disk, FileFacts};
use super::system;
use crate::memory::{HugePages, Mapping};

/// How files shall be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileMode {
    /// Past the page cache, file by file; buffered where that is refused.
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
    identity: FileIdentity,
}

/// A file opened for direct reads.
#[derive(Debug)]
struct DirectFile {
    file: File,
    alignment: Alignment,
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
        self.files.get(index).map(|file| file.identity.len_bytes())
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
        Some(FileFacts { path: &file.path, len_bytes: file.identity.len_bytes(), direct })
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
            match read_at(file, memory, offset) {
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
    system::forget_all(file);
}

impl ModelFile {
    fn open(path: &Path, mode: FileMode) -> io::Result<Self> {
        Self::over(path, File::open(path)?, mode)
    }

    fn over(path: &Path, buffered: File, mode: FileMode) -> io::Result<Self> {
        let identity = FileIdentity::of(&buffered.metadata()?);
        // Experts lie where routing sends us.
        system::expect_random(&buffered);
        let direct = match mode {
            FileMode::DirectIfPossible => DirectFile::open(path, &buffered),
            FileMode::Buffered => None,
        };
        Ok(Self { path: path.to_owned(), direct, buffered, identity })
    }

    /// Whether the file still is what was opened. One system call of about a microsecond.
    fn unchanged(&self) -> bool {
        self.buffered.metadata().is_ok_and(|now| FileIdentity::of(&now) == self.identity)
    }

    /// Makes the page cache drop a range, whole pages around it too.
    fn forget(&self, offset: u64, len_bytes: usize) {
        system::forget(&self.buffered, offset, len_bytes);
    }
}

impl DirectFile {
    /// `None` where the filesystem refuses direct reads, at opening or at the first read.
    fn open(path: &Path, buffered: &File) -> Option<Self> {
        let (file, alignment) = system::open_direct(path, buffered)?;
        let direct = Self { file, alignment };
        direct.can_read().then_some(direct)
    }

    fn can_read(&self) -> bool {
        let len = self.alignment.offset.max(self.alignment.memory);
        let Ok(memory) = Mapping::reserve(len, HugePages::Refuse) else { return false };
        // SAFETY: a fresh mapping of `len` zeroed bytes that only this function knows.
        let buffer = unsafe { std::slice::from_raw_parts_mut(memory.base().as_ptr(), len) };
        read_at(&self.file, buffer, 0).is_ok()
    }
}
