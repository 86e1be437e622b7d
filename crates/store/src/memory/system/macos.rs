//! macOS: as Linux, but memory is given back by mapping the range anew. `MADV_FREE_REUSABLE` would
//! leave what the pages held, and count them again only after `MADV_FREE_REUSE`.

use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of a page: 16 KiB on Apple's own processors.
pub(crate) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// A private mapping of zeroes.
pub(crate) fn map(len_bytes: usize) -> io::Result<NonNull<u8>> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new anonymous mapping at an address the kernel picks aliases nothing.
    let base = unsafe { rustix::mm::mmap_anonymous(null_mut(), len_bytes, protection, flags)? };
    NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory.into())
}

/// Nothing: the system chooses by itself.
///
/// # Safety
/// None; others have conditions.
pub(crate) unsafe fn allow_huge_pages(_start: *mut u8, _len_bytes: usize, _allowed: bool) {}

/// Gives a range of whole pages back; it reads as zero afterwards.
///
/// # Safety
/// The range lies in one mapping, and nobody uses it during the call.
pub(crate) unsafe fn discard(start: *mut u8, len_bytes: usize) {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: takes the place of a part of our own mapping that nobody uses, as the caller vouches.
    let done = unsafe { rustix::mm::mmap_anonymous(start.cast(), len_bytes, protection, flags) };
    debug_assert!(done.is_ok(), "{done:?}");
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
