//! Memory nodes (NUMA): where a thread is now, and memory from one of them.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod chosen;
#[cfg(not(target_os = "linux"))]
#[path = "portable.rs"]
mod chosen;

pub(crate) use chosen::{current_cpu, prefer};
