//! Memory that was freed, back to the system. llama.cpp and ggml allocate a model in pieces of
//! megabytes, and glibc keeps those of each thread for the next allocation: after two models of
//! 450 and 850 MB were unloaded, 760 MB stayed resident.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[path = "glibc.rs"]
mod system;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[path = "portable.rs"]
mod system;

pub use system::give_back_freed;
pub(super) use system::return_large_blocks;
