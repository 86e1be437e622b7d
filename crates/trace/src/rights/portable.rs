//! Systems whose rights are no bits: the folder decides.

use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use tempfile::Builder;

/// Nothing: the file has its folder's rights.
pub(crate) fn set_mode(_builder: &mut Builder<'_, '_>, _mode: u32) {}

/// Nothing: folders cannot be opened for it.
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Not known.
pub fn mode(_metadata: &Metadata) -> Option<u32> {
    None
}

/// Makes a folder, and those it is in.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Makes an empty file; one that is there stays.
pub fn make_private_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
