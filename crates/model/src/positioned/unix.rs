//! By `pread`, which leaves the position alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Reads from `offset` on, fewer bytes at the end of the file.
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}
