//! Address space without memory, and advice about memory: none changes a byte, and a system that
//! does not take it does nothing.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod chosen;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "unix.rs"]
mod chosen;
#[cfg(windows)]
#[path = "windows.rs"]
mod chosen;

#[cfg(unix)]
mod zeros;

#[cfg(windows)]
pub(crate) use chosen::Zeros;
pub(crate) use chosen::{
    advise_normal, advise_soon, bring_in, page_bytes, prefer_large_pages, release, reserve,
};
#[cfg(unix)]
pub(crate) use zeros::Zeros;
