//! A file as memory: mapped read-only, whole, shared with whoever else has it mapped.

#[cfg(unix)]
#[path = "unix.rs"]
mod chosen;
#[cfg(windows)]
#[path = "windows.rs"]
mod chosen;

pub(super) use chosen::{map, unmap};
