//! Files that are there whole or not at all: written beside their place, put on the disk, then
//! given their name. What traces, profiles, calibrations and every other kept file have in
//! common; what is in them is theirs.
//!
//! ```text
//! .<name>.XXXXXX.part   being written; left behind only by a process that was killed
//! <name>                the whole file, or the one before
//! ```
//!
//! A place that is no plain file (`/dev/stdout`, a pipe) is written directly: it cannot be
//! replaced, and must not be.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::rights::{set_mode, sync_folder};

/// End of the name of a file that is being written; readers of folders pass such files over.
pub const UNFINISHED: &str = "part";

/// Rights of every new file, before the process's mask.
const ANY_FILE: u32 = 0o666;
/// Of one that only its owner may read.
const OWN_FILE: u32 = 0o600;

/// A file being written. Dropped before [`WholeFile::finish`], it leaves no trace.
#[derive(Debug)]
pub struct WholeFile(Place);

#[derive(Debug)]
enum Place {
    /// Written beside `path`, which it replaces.
    Beside { part: NamedTempFile, path: PathBuf },
    /// No plain file: written as it comes.
    Direct(File),
}

impl WholeFile {
    /// Begins a file that will take the place of what is at `path`. A link stays, and what it
    /// names is replaced; a file that was there keeps its rights.
    pub fn replace(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                Ok(Self(Place::Direct(OpenOptions::new().write(true).open(path)?)))
            }
            Ok(found) => {
                let path = fs::canonicalize(path)?;
                let part = part_beside(&path, ANY_FILE)?;
                part.as_file().set_permissions(found.permissions())?;
                Ok(Self(Place::Beside { part, path }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self(Place::Beside {
                part: part_beside(path, ANY_FILE)?,
                path: path.to_path_buf(),
            })),
            Err(error) => Err(error),
        }
    }

    /// As [`WholeFile::replace`] of a plain file, for what only its owner may read.
    pub fn private(path: &Path) -> io::Result<Self> {
        Ok(Self(Place::Beside { part: part_beside(path, OWN_FILE)?, path: path.to_path_buf() }))
    }

    /// Brings what was written so far to the disk: a full disk is found out here at the latest.
    pub fn sync(&mut self) -> io::Result<()> {
        match &self.0 {
            Place::Beside { part, .. } => part.as_file().sync_all(),
            // Devices and pipes cannot be synced, and hold nothing back.
            Place::Direct(_) => Ok(()),
        }
    }

    /// Gives the file its name, with everything on the disk.
    pub fn finish(mut self) -> io::Result<()> {
        self.sync()?;
        match self.0 {
            Place::Direct(_) => Ok(()),
            Place::Beside { part, path } => {
                part.persist(&path)?;
                sync_folder_of(&path)
            }
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Place::Beside { part, .. } => part.write(bytes),
            Place::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Place::Beside { part, .. } => part.flush(),
            Place::Direct(file) => file.flush(),
        }
    }
}

/// Puts `bytes` in the place of what is at `path`.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::replace(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Writes `bytes` into a new file: the first of `paths`, all of one folder, whose name is free.
/// [`io::ErrorKind::AlreadyExists`] when none is.
pub fn create(paths: impl IntoIterator<Item = PathBuf>, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut paths = paths.into_iter().peekable();
    let first = paths.peek().ok_or(io::ErrorKind::InvalidInput)?;
    let mut part = part_beside(first, ANY_FILE)?;
    part.write_all(bytes)?;
    part.as_file().sync_all()?;
    for path in paths {
        match part.persist_noclobber(&path) {
            Ok(_) => return sync_folder_of(&path).map(|()| path),
            Err(taken) if taken.error.kind() == io::ErrorKind::AlreadyExists => part = taken.file,
            Err(failed) => return Err(failed.error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// An unfinished file in the folder of `path`, with these rights as far as the process's mask leaves
/// them.
fn part_beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    let suffix = format!(".{UNFINISHED}");
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(&suffix);
    set_mode(&mut builder, mode);
    builder.tempfile_in(folder_of(path))
}

/// A name is on the disk when its folder is.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    sync_folder(folder_of(path))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| name(e).into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_unfinished_file_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.json");
        replace(&path, b"before").unwrap();
        let mut file = WholeFile::replace(&path).unwrap();
        file.write_all(b"half of wha").unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        drop(file);
        assert_eq!(names(folder.path()), ["kept.json"]);
        assert_eq!(fs::read(&path).unwrap(), b"before");
        replace(&path, b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
    }

    #[test]
    fn a_new_file_takes_the_first_free_name() {
        let folder = tempfile::tempdir().unwrap();
        let paths = || ["a", "b"].map(|name| folder.path().join(name));
        assert!(create(paths(), b"1").unwrap().ends_with("a"));
        assert!(create(paths(), b"2").unwrap().ends_with("b"));
        let error = create(paths(), b"3").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["a", "b"]);
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"1");
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_devices_are_written_directly() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "x").unwrap();
        symlink("file", at("link")).unwrap();
        replace(&at("link"), b"new").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read(at("file")).unwrap(), b"new");
        let plain = fs::metadata(at("file")).unwrap().permissions().mode();
        fs::write(at("other"), "").unwrap();
        assert_eq!(plain, fs::metadata(at("other")).unwrap().permissions().mode());
        fs::set_permissions(at("other"), fs::Permissions::from_mode(0o600)).unwrap();
        replace(&at("other"), b"secret").unwrap();
        assert_eq!(fs::metadata(at("other")).unwrap().permissions().mode() & 0o777, 0o600);
        replace(Path::new("/dev/null"), b"gone").unwrap();
        assert!(Path::new("/dev/null").exists());
        if Path::new("/dev/full").exists() {
            symlink("/dev/full", at("full")).unwrap();
            let error = replace(&at("full"), b"x").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }
}
