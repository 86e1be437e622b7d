//! What the system offers for reading a file's ranges: past its page cache, without reading ahead,
//! and leaving nothing behind. Each system says how; one that cannot does nothing, or has no direct
//! reads, and the reader goes through the page cache.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod chosen;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod chosen;
#[cfg(windows)]
#[path = "windows.rs"]
mod chosen;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
#[path = "portable.rs"]
mod chosen;

pub(super) use chosen::{expect_random, forget, forget_all, open_direct};
