//! By `pread`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Reads until some bytes arrive; interruptions are retried.
///
/// # Safety
/// `out` must be valid for writing `len` bytes.
pub(crate) unsafe fn pread(
    file: &File,
    out: *mut u8,
    len: usize,
    offset: u64,
) -> io::Result<usize> {
    loop {
        // SAFETY: the descriptor is open for the life of `file`; `out` has room (caller).
        let got = unsafe { libc::pread(file.as_raw_fd(), out.cast(), len, offset as libc::off_t) };
        match usize::try_from(got) {
            Ok(got) => return Ok(got),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
