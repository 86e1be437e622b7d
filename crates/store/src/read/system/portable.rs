//! Systems without a file of their own: everything goes through the page cache, as it likes.

use std::fs::File;
use std::path::Path;

use crate::read::disk::Alignment;

/// Does nothing.
pub(crate) fn expect_random(_file: &File) {}

/// Does nothing.
pub(crate) fn forget(_file: &File, _offset: u64, _len_bytes: usize) {}

/// Does nothing.
pub(crate) fn forget_all(_file: &File) {}

/// None.
pub(crate) fn open_direct(_path: &Path, _buffered: &File) -> Option<(File, Alignment)> {
    None
}
