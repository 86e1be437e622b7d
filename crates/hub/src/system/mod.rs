//! What the cache asks of the system's disk: a second name for bytes, and how much room there is.

#[cfg(unix)]
#[path = "unix.rs"]
mod chosen;
#[cfg(not(unix))]
#[path = "portable.rs"]
mod chosen;

pub(crate) use chosen::{free_bytes, make_link};
