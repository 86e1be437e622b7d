//! Windows: address space is reserved and nothing of it may be touched, because what may be counts
//! against RAM and page file from the start.

use crate::system::sparse;
use std::ffi::c_void;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, MEM_RELEASE, MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS,
    MapViewOfFile, PAGE_NOACCESS, PAGE_READONLY, PrefetchVirtualMemory, UnmapViewOfFile,
    VirtualAlloc, VirtualFree, WIN32_MEMORY_RANGE_ENTRY,
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

/// Zeros that take no memory: a file of holes, mapped. Memory that may be read would count against
/// RAM and page file; what the system keeps of a file's pages does not.
pub(crate) struct Zeros {
    base: MEMORY_MAPPED_VIEW_ADDRESS,
    /// Deleted when it is closed, which is refused while it is mapped.
    _file: File,
}

impl Zeros {
    /// So many; `None` when the system has no more address space, or takes no such file.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let file = sparse::temporary(bytes.max(1) as u64).ok()?;
        // SAFETY: the file's handle is open; a section without a name is ours alone, and a view at an
        // address the system picks aliases nothing. The view keeps the section.
        let base = unsafe {
            let section =
                CreateFileMappingW(file.as_raw_handle(), null(), PAGE_READONLY, 0, 0, null());
            if section.is_null() {
                return None;
            }
            let section = OwnedHandle::from_raw_handle(section);
            MapViewOfFile(section.as_raw_handle(), FILE_MAP_READ, 0, 0, 0)
        };
        (!base.Value.is_null()).then_some(Self { base, _file: file })
    }

    /// Where they are; nothing can be written there.
    pub(crate) fn base(&self) -> *mut c_void {
        self.base.Value
    }
}

impl Drop for Zeros {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; who reads them keeps `self`.
        unsafe { UnmapViewOfFile(self.base) };
    }
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
