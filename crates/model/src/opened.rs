//! A file of a model, opened once: everybody who reads it uses this handle, so that a path looked
//! up twice cannot be two files. Knows whether somebody has written to it since; reads nothing.

mod system;

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A file, open for reading, and what it was when it was opened. Clones are the same handle.
#[derive(Debug, Clone)]
pub struct OpenedFile {
    path: PathBuf,
    file: Arc<File>,
    identity: FileIdentity,
}

impl OpenedFile {
    /// Opens `path`; on Windows nobody can write to it from then on.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = system::open(path)?;
        let identity = FileIdentity::of(&file.metadata()?);
        Ok(Self { path: path.to_owned(), file: Arc::new(file), identity })
    }

    /// Where it was found; for messages, not for opening it again.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The handle. Read it at offsets: its position is everybody's.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes it had when it was opened.
    pub fn len_bytes(&self) -> u64 {
        self.identity.len_bytes()
    }

    /// Whether nobody has written to it or cut it since it was opened. One system call of about a
    /// microsecond.
    pub fn is_unchanged(&self) -> bool {
        self.file.metadata().is_ok_and(|now| FileIdentity::of(&now) == self.identity)
    }
}

/// What changes when somebody writes into a file or truncates it. A file replaced by rename keeps
/// its bytes for us, and its identity; so the time of its inode's last change does not count, which
/// a rename, a link or a backup moves as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    len_bytes: u64,
    /// `None` where the system does not say.
    modified: Option<SystemTime>,
}

impl FileIdentity {
    /// As its file is now.
    pub fn of(metadata: &Metadata) -> Self {
        Self { len_bytes: metadata.len(), modified: metadata.modified().ok() }
    }

    /// Bytes of the file.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn writing_and_cutting_are_seen_and_a_rename_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, [7; 4096]).unwrap();
        let opened = OpenedFile::open(&path).unwrap();
        assert!(opened.is_unchanged());
        let elsewhere = folder.path().join("old.gguf");
        std::fs::rename(&path, &elsewhere).unwrap();
        std::fs::write(&path, [8; 100]).unwrap();
        assert!(opened.is_unchanged(), "our bytes are those of before");

        let opened = if system::KEEPS_WRITERS_OUT {
            assert!(writer_of(&elsewhere).is_err(), "nobody writes to a file that is open");
            let identity = opened.identity;
            drop(opened);
            // As a file of a model that somebody could write to.
            OpenedFile { path, file: Arc::new(File::open(&elsewhere).unwrap()), identity }
        } else {
            opened
        };
        let writer = writer_of(&elsewhere).unwrap();
        let before = opened.file().metadata().unwrap().modified().unwrap();
        writer.set_modified(next(before)).unwrap();
        assert!(!opened.is_unchanged(), "written, with the length it had");
        writer.set_modified(before).unwrap();
        assert!(opened.is_unchanged(), "all as it was");
        writer.set_len(100).unwrap();
        writer.set_modified(before).unwrap();
        assert!(!opened.is_unchanged(), "cut");
        drop(opened);
        assert_eq!(OpenedFile::open(&elsewhere).is_err(), system::KEEPS_WRITERS_OUT);
    }

    fn writer_of(path: &Path) -> io::Result<File> {
        File::options().write(true).open(path)
    }

    /// The next time that the system tells apart: a nanosecond later, or 100 on Windows.
    fn next(time: SystemTime) -> SystemTime {
        let later = (0..9).map(|digits| time + Duration::from_nanos(10_u64.pow(digits)));
        later.into_iter().find(|later| *later > time).unwrap()
    }
}
