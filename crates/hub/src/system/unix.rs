//! Symbolic links and `statvfs`.

use std::io;
use std::path::Path;

/// A link at `at` to `target`, which is a path from its folder.
pub(crate) fn make_link(target: &Path, _whole: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

/// Bytes free for this user on the disk of `folder`.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
