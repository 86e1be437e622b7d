//! Linux: `mmap` and `madvise`.

use std::ffi::c_void;
use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Bytes of a page.
pub(crate) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// A private mapping of zeroes that no core dump holds.
pub(crate) fn map(len_bytes: usize) -> io::Result<NonNull<u8>> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new anonymous mapping at an address the kernel picks aliases nothing; the advice
    // concerns core dumps alone.
    unsafe {
        let base = rustix::mm::mmap_anonymous(null_mut(), len_bytes, protection, flags)?;
        let _ = rustix::mm::madvise(base, len_bytes, Advice::LinuxDontDump);
        NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory.into())
    }
}

/// Says whether huge pages may back a range. A wish: a kernel built without huge pages refuses, and
/// nothing is lost.
///
/// # Safety
/// The range lies in one mapping.
pub(crate) unsafe fn allow_huge_pages(start: *mut u8, len_bytes: usize, allowed: bool) {
    let advice = if allowed { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
    // SAFETY: inside a mapping, as the caller vouches; the advice changes what backs memory,
    // never what it holds.
    let _ = unsafe { rustix::mm::madvise(start.cast::<c_void>(), len_bytes, advice) };
}

/// Gives a range of whole pages back; it reads as zero afterwards.
///
/// # Safety
/// The range lies in one mapping, and nobody uses it during the call.
pub(crate) unsafe fn discard(start: *mut u8, len_bytes: usize) {
    // SAFETY: as the caller vouches.
    let done = unsafe { rustix::mm::madvise(start.cast(), len_bytes, Advice::LinuxDontNeed) };
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
