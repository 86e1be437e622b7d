//! Files that are mostly holes: asked for where address space cannot be had without memory (`memory`),
//! and where a stream has to have a file.

#[cfg(windows)]
#[path = "windows.rs"]
mod chosen;

#[cfg(windows)]
pub(crate) use chosen::temporary;
