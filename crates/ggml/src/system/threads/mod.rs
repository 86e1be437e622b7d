//! The stack of a thread that is started with none of its own asked for.

#[cfg(unix)]
#[path = "unix.rs"]
mod chosen;
#[cfg(windows)]
#[path = "windows.rs"]
mod chosen;

pub(crate) use chosen::default_stack_bytes;
