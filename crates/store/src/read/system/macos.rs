//! macOS: `F_NOCACHE` on a handle of its own. There is no way to make the page cache drop what other
//! handles have read: a file that is read buffered stays in it until memory gets scarce.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::memory::page_bytes;
use crate::read::disk::Alignment;

/// Does nothing: the flag belongs to direct reads, and they read no further than they are told.
pub(crate) fn expect_random(_file: &File) {}

/// Does nothing.
pub(crate) fn forget(_file: &File, _offset: u64, _len_bytes: usize) {}

/// Does nothing.
pub(crate) fn forget_all(_file: &File) {}

/// The file of `buffered` once more, for reads that the page cache keeps nothing of; `None` where
/// another file lies at `path` by now. What is not aligned to pages would go through the cache.
pub(crate) fn open_direct(path: &Path, buffered: &File) -> Option<(File, Alignment)> {
    // Not by the handle's own name: in /dev/fd it would be the same handle, and share the flag.
    let file = File::open(path).ok()?;
    let inode = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
    if inode(&file)? != inode(buffered)? {
        return None;
    }
    rustix::fs::fcntl_nocache(&file, true).ok()?;
    Some((file, Alignment { memory: page_bytes(), offset: page_bytes() }))
}
