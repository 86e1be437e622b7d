//! What ggml calls when it has loaded us. The ggml that called is the one to work with, whatever its
//! file is called: found by where the call came from, which only the processor's own language says.

#[cfg(all(unix, target_arch = "aarch64"))]
#[path = "aarch64.rs"]
mod processor;
#[cfg(all(unix, target_arch = "x86_64"))]
#[path = "x86_64.rs"]
mod processor;
#[cfg(not(all(unix, any(target_arch = "aarch64", target_arch = "x86_64"))))]
#[path = "portable.rs"]
mod processor;

pub use processor::ggml_backend_init;
