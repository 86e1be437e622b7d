//! How a model's file is opened for reading, and whether others may write to it as long as it is open.

#[cfg(unix)]
#[path = "unix.rs"]
mod chosen;
#[cfg(windows)]
#[path = "windows.rs"]
mod chosen;

#[cfg(test)]
pub(super) use chosen::KEEPS_WRITERS_OUT;
pub(super) use chosen::open;
