//! Windows: address space is reserved and nothing of it may be touched, because what may be counts
//! against RAM and page file from the start.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null;
use windows_sys::Win32::System::Memory::{
    MEM_RELEASE, MEM_RESERVE, PAGE_NOACCESS, PrefetchVirtualMemory, VirtualAlloc, VirtualFree,
    WIN32_MEMORY_RANGE_ENTRY,
};
use windows_sys::Win32::System::SystemInformation::{GetSystemInfo, SYSTEM_INFO};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// Bytes of a page.
pub(crate) fn page_bytes() -> usize {
    let mut found = MaybeUninit::<SYSTEM_INFO>::zeroed();
    // SAFETY: all zero is a value of this struct of numbers and pointers, and the call fills it in.
    let found = unsafe {
        GetSystemInfo(found.as_mut_ptr());
        found.assume_init()
    };
    found.dwPageSize as usize
}

/// Address space of which nothing is there; `None` when the system has no more.
pub(crate) fn reserve(bytes: usize) -> Option<*mut c_void> {
    // SAFETY: new address space at a place the system picks aliases nothing.
    let base = unsafe { VirtualAlloc(null(), bytes.max(1), MEM_RESERVE, PAGE_NOACCESS) };
    (!base.is_null()).then_some(base)
}

/// Ends what [`reserve`] gave.
///
/// # Safety
/// `base` came from it, and nobody uses it any more.
pub(crate) unsafe fn release(base: *mut c_void, _bytes: usize) {
    // SAFETY: by the caller; all of it goes at once.
    unsafe { VirtualFree(base, 0, MEM_RELEASE) };
}

/// Does nothing: large pages need a right that few accounts have.
pub(crate) fn prefer_large_pages(_start: *mut c_void, _bytes: usize) {}

/// Asks for a mapped file's pages.
pub(crate) fn bring_in(start: *mut c_void, bytes: usize) {
    advise_soon(start, bytes);
}

/// Says that a mapped file's pages are wanted soon.
pub(crate) fn advise_soon(start: *mut c_void, bytes: usize) {
    let range = WIN32_MEMORY_RANGE_ENTRY { VirtualAddress: start, NumberOfBytes: bytes };
    // SAFETY: one range, which outlives the call; it changes no content, whatever lies there.
    unsafe { PrefetchVirtualMemory(GetCurrentProcess(), 1, &raw const range, 0) };
}

/// Does nothing: there is no advice to take back.
pub(crate) fn advise_normal(_start: *mut c_void, _bytes: usize) {}
