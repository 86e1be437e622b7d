//! Windows brings a file's time of last writing up to date when the writer closes or flushes it, which
//! can be long after others have read what was written. So nobody else may write to a file of a model
//! while it is open, and one that somebody is writing to does not open (error 32, a sharing violation).
//! It can still be renamed, and a file that is not mapped replaced and deleted.

use std::fs::File;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;

/// `FILE_SHARE_READ` of `winnt.h`: others may read.
const SHARE_READ: u32 = 1;
/// `FILE_SHARE_DELETE` of `winnt.h`: others may rename and delete.
const SHARE_DELETE: u32 = 4;

/// Whether nobody can write to a file that is open.
#[cfg(test)]
pub(crate) const KEEPS_WRITERS_OUT: bool = true;

/// Opens `path` for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).share_mode(SHARE_READ | SHARE_DELETE).open(path)
}
