//! A read at an offset into memory that may hold nothing yet, as C streams hand it over.

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "portable.rs"]
mod system;

pub(super) use system::pread;
