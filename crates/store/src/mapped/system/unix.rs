//! By `mmap`.

use std::fs::File;
use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags};

/// Maps the first `len_bytes` of `file`.
pub(crate) fn map(file: &File, len_bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address the kernel picks aliases nothing. Who cuts the file
    // short while it is in use makes reading it a signal, which `ggml` catches for mappings
    // that are given to it.
    let base = unsafe {
        let (read, shared) = (ProtFlags::READ, MapFlags::SHARED);
        rustix::mm::mmap(null_mut(), len_bytes, read, shared, file, 0)?
    };
    NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory.into())
}

/// Ends a mapping.
///
/// # Safety
/// Exactly what [`map`] returned, and nobody uses it any more.
pub(crate) unsafe fn unmap(base: NonNull<u8>, len_bytes: usize) {
    // SAFETY: as the caller vouches.
    let done = unsafe { rustix::mm::munmap(base.as_ptr().cast(), len_bytes) };
    debug_assert!(done.is_ok(), "{done:?}");
}
