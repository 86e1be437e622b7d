//! Binding the calling thread to CPUs. ggml binds the workers of a pool itself, but the thread
//! that asks for work only when the pool is made; with two pools (A5) it changes sides.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
#[path = "portable.rs"]
mod system;

pub(crate) use system::bind_this_thread;
