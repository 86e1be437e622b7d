//! What the system reports other than through files: everything off Linux, nothing on it.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod files_only;
#[cfg(any(feature = "portable", not(any(target_os = "linux", target_os = "android"))))]
mod portable;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use files_only::{cpu_name, load_average, memory};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use portable::{cpu_name, load_average, memory};

/// Memory of the machine as a call tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemMemory {
    pub(crate) total_bytes: u64,
    pub(crate) available_bytes: u64,
}
