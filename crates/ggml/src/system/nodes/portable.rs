//! Systems whose nodes are not known here: macOS has one; Windows would place threads as well.

use std::ffi::c_void;
use std::io;

/// Not known.
pub(crate) fn current_cpu() -> Option<usize> {
    None
}

/// Says that the system takes no such wish.
pub(crate) fn prefer(_id: u32, _start: *mut c_void, _bytes: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
