//! The io_uring backend, where the system has it. One `cfg`; both files offer the same function.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "portable.rs"]
mod system;

pub(super) use system::start;
