//! Systems whose C library has no user-defined streams: models cannot be loaded there.

use super::file::VirtualFile;
use std::io;

/// Says that this system cannot.
///
/// # Safety
/// None needed; the signature is that of the systems which can.
pub(super) unsafe fn open(_: *mut VirtualFile) -> io::Result<*mut libc::FILE> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system's C library has no user-defined streams",
    ))
}
