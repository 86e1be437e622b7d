//! Libraries of this process: by an address in them, or loaded by path; and functions by name. None
//! is ever unloaded.

#[cfg(unix)]
#[path = "unix.rs"]
mod chosen;
#[cfg(windows)]
#[path = "windows.rs"]
mod chosen;

pub(crate) use chosen::{around, find, load, path_around};

#[cfg(all(test, feature = "llama"))]
pub(crate) use chosen::this_program;
