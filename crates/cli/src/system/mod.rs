//! What commands ask of the system beside files: limits of a child, a service manager that waits, a
//! request to stop, and processor time.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::{limit_self, say_ready};
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{limit_self, say_ready};
#[cfg(all(unix, feature = "npu"))]
pub(crate) use unix::process_cpu;
#[cfg(unix)]
pub(crate) use unix::told_to_stop;
#[cfg(all(not(unix), feature = "npu"))]
pub(crate) use windows::process_cpu;
#[cfg(not(unix))]
pub(crate) use windows::told_to_stop;

/// What a process may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessLimits {
    pub(crate) address_bytes: u64,
    pub(crate) processor_s: u64,
}
