//! By `ReadFile` with an offset, which moves the position as well: of use to nobody then.

use std::fs::File;
use std::io;
use std::os::windows::fs::FileExt;

/// Reads from `offset` on, fewer bytes at the end of the file.
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}
