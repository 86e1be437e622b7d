//! Systems whose C library has no user-defined streams: models are mapped there.

use super::VirtualFile;
use std::io;

/// Never opens.
pub(crate) struct Stream(std::convert::Infallible);

impl Stream {
    /// Says that this system cannot.
    pub(crate) fn open(_: VirtualFile) -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this system's C library has no user-defined streams; use --loading mapped",
        ))
    }

    pub(crate) fn raw(&self) -> *mut libc::FILE {
        match self.0 {}
    }
}
