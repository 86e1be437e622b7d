//! Linux: `mmap` and `madvise`.

use std::ffi::c_void;
use std::ptr::null_mut;

/// Bytes of a page.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: a number of the system's.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize
}

/// Address space of which nothing is there; `None` when the system has no more.
pub(crate) fn reserve(bytes: usize) -> Option<*mut c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: an anonymous private mapping aliases nothing; NORESERVE keeps it
    // from counting against memory until a page is written.
    let base = unsafe { libc::mmap(null_mut(), bytes.max(1), rights, flags, -1, 0) };
    (base != libc::MAP_FAILED).then_some(base)
}

/// Ends what [`reserve`] gave.
///
/// # Safety
/// `base` came from it with this number of bytes, and nobody uses it any more.
pub(crate) unsafe fn release(base: *mut c_void, bytes: usize) {
    // SAFETY: by the caller.
    unsafe { libc::munmap(base, bytes.max(1)) };
}

/// Asks for pages of 2 MiB behind the whole pages of the given memory, which is this process's.
pub(crate) fn prefer_large_pages(start: *mut c_void, bytes: usize) {
    let page = page_bytes();
    let skipped = start.addr().wrapping_neg() % page;
    let bytes = bytes.saturating_sub(skipped) / page * page;
    // SAFETY: advice about memory of this process; it changes no byte, whoever owns it.
    unsafe { libc::madvise(start.wrapping_byte_add(skipped), bytes, libc::MADV_HUGEPAGE) };
}

/// Brings a mapped file's pages in, or asks for them.
pub(crate) fn bring_in(start: *mut c_void, bytes: usize) {
    // SAFETY: advice about pages of a mapping changes no byte.
    if unsafe { libc::madvise(start, bytes, libc::MADV_POPULATE_READ) } != 0 {
        advise_soon(start, bytes);
    }
}

/// Says that a mapped file's pages are wanted soon.
pub(crate) fn advise_soon(start: *mut c_void, bytes: usize) {
    // SAFETY: advice changes no content, whatever lies there.
    unsafe { libc::madvise(start, bytes, libc::MADV_WILLNEED) };
}

/// Says that they are read as any others.
pub(crate) fn advise_normal(start: *mut c_void, bytes: usize) {
    // SAFETY: advice changes no content, whatever lies there.
    unsafe { libc::madvise(start, bytes, libc::MADV_NORMAL) };
}
