//! Faults in mapped files: a page that a cut file no longer has. Watched mappings go on reading,
//! zeros, and the fault is remembered, so that the computation ends and its result can be refused.

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "portable.rs"]
mod system;

pub(crate) use system::{Watched, watch};
