//! Whether threads can be bound to cores here. Who is bound where is the engine's choice, and ggml
//! does it for the workers of its pools.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
#[path = "portable.rs"]
mod system;

pub use system::is_offered;
