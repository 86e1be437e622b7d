//! Windows: memory is committed as a whole, so that any of it may be touched, and takes pages when it
//! is first written. What is given back stays committed: it counts against RAM and page file
//! together, not against RAM, and taking it again cannot fail.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null};
use std::sync::OnceLock;

use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, MEM_RESET, PAGE_READWRITE, VirtualAlloc, VirtualFree,
};
use windows_sys::Win32::System::SystemInformation::{GetSystemInfo, SYSTEM_INFO};

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

/// Zeroes, aligned to a page.
pub(crate) fn map(len_bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: new memory at an address the system picks aliases nothing.
    let base = unsafe { VirtualAlloc(null(), len_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
    NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)
}

/// Nothing: large pages need a right that few accounts have.
///
/// # Safety
/// None; others have conditions.
pub(crate) unsafe fn allow_huge_pages(_start: *mut u8, _len_bytes: usize, _allowed: bool) {}

/// Gives a range of whole pages back; what it reads as afterwards is the system's choice. Where the
/// call for it is missing, as in Wine, the system is told that nobody wants what is there.
///
/// # Safety
/// The range lies in one mapping, and nobody uses it during the call.
pub(crate) unsafe fn discard(start: *mut u8, len_bytes: usize) {
    // SAFETY: as the caller vouches.
    unsafe {
        match discard_virtual_memory() {
            Some(discard) => {
                let failed = discard(start.cast(), len_bytes);
                debug_assert_eq!(failed, 0);
            }
            None => {
                let reset = VirtualAlloc(start.cast(), len_bytes, MEM_RESET, PAGE_READWRITE);
                debug_assert!(!reset.is_null());
            }
        }
    }
}

type DiscardVirtualMemory = unsafe extern "system" fn(*mut c_void, usize) -> u32;

/// Looked up, because a program that asks the linker for it ends where it is missing.
fn discard_virtual_memory() -> Option<DiscardVirtualMemory> {
    static FOUND: OnceLock<Option<DiscardVirtualMemory>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: names that end; the library stays, and its function is of this type.
        unsafe {
            let library = GetModuleHandleW(windows_sys::core::w!("kernel32.dll"));
            let found = GetProcAddress(library, c"DiscardVirtualMemory".as_ptr().cast())?;
            Some(std::mem::transmute::<unsafe extern "system" fn() -> isize, DiscardVirtualMemory>(
                found,
            ))
        }
    })
}

/// Ends a mapping.
///
/// # Safety
/// Exactly what [`map`] returned, and nobody uses it any more.
pub(crate) unsafe fn unmap(base: NonNull<u8>, _len_bytes: usize) {
    // SAFETY: as the caller vouches; all of it goes at once.
    let done = unsafe { VirtualFree(base.as_ptr().cast(), 0, MEM_RELEASE) };
    debug_assert_ne!(done, 0);
}
