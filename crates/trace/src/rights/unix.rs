//! Bits of the file's mode.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use tempfile::Builder;

/// Rights of a file that will be made, as far as the process's mask leaves them.
pub(crate) fn set_mode(builder: &mut Builder<'_, '_>, mode: u32) {
    builder.permissions(Permissions::from_mode(mode));
}

/// A name is on the disk when its folder is.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The rights of a file as bits; `None` where they are none.
pub fn mode(metadata: &Metadata) -> Option<u32> {
    Some(metadata.permissions().mode() & 0o777)
}

/// Makes a folder, and those it is in, for the owner alone.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes an empty file that only its owner may read; one that is there keeps its rights.
pub fn make_private_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
