//! The system's calls that map memory, and nothing else. Miri knows few of them: `portable` stands
//! in there, and on systems without a file of their own.

#[cfg(all(target_os = "linux", not(miri)))]
#[path = "linux.rs"]
mod chosen;
#[cfg(all(target_os = "macos", not(miri)))]
#[path = "macos.rs"]
mod chosen;
#[cfg(all(windows, not(miri)))]
#[path = "windows.rs"]
mod chosen;
#[cfg(any(miri, not(any(target_os = "linux", target_os = "macos", windows))))]
#[path = "portable.rs"]
mod chosen;

pub(super) use chosen::{allow_huge_pages, discard, map, page_bytes, unmap};
