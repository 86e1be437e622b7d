//! Memory under Miri, and on systems without a file of their own: allocated, as neither knows
//! `madvise`. What is given back is overwritten, so that Miri sees whoever still reads it; elsewhere
//! its pages stay until all is given back.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

const PAGE_BYTES: usize = 4096;

/// Bytes that count as a page.
pub(crate) fn page_bytes() -> usize {
    PAGE_BYTES
}

fn layout(len_bytes: usize) -> io::Result<Layout> {
    Layout::from_size_align(len_bytes, PAGE_BYTES).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// Zeroes, aligned to a page.
pub(crate) fn map(len_bytes: usize) -> io::Result<NonNull<u8>> {
    let layout = layout(len_bytes)?;
    // SAFETY: `Mapping` asks for a byte at least.
    let base = unsafe { alloc_zeroed(layout) };
    NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory.into())
}

/// Nothing: there are no pages.
///
/// # Safety
/// None; the system's has conditions.
pub(crate) unsafe fn allow_huge_pages(_start: *mut u8, _len_bytes: usize, _allowed: bool) {}

/// Zeroes a range.
///
/// # Safety
/// The range lies in one mapping, and nobody uses it during the call.
pub(crate) unsafe fn discard(start: *mut u8, len_bytes: usize) {
    // SAFETY: as the caller vouches.
    unsafe { start.write_bytes(0, len_bytes) };
}

/// Frees it.
///
/// # Safety
/// Exactly what [`map`] returned, and nobody uses it any more.
pub(crate) unsafe fn unmap(base: NonNull<u8>, len_bytes: usize) {
    let layout = layout(len_bytes).expect("it was allocated with this layout");
    // SAFETY: as the caller vouches.
    unsafe { dealloc(base.as_ptr(), layout) };
}
