//! By the standard library, which wants memory that holds something.

use std::fs::File;
use std::io;

/// Reads until some bytes arrive.
///
/// # Safety
/// `out` must be valid for writing `len` bytes.
pub(crate) unsafe fn pread(
    file: &File,
    out: *mut u8,
    len: usize,
    offset: u64,
) -> io::Result<usize> {
    // SAFETY: `out` has room (caller), and is initialised first.
    let bytes = unsafe {
        out.write_bytes(0, len);
        std::slice::from_raw_parts_mut(out, len)
    };
    motley_model::read_at(file, bytes, offset)
}
