//! By a section of the file and a view of it. Windows cuts no file that has a view.

use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{NonNull, null};

use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, PAGE_READONLY,
    UnmapViewOfFile,
};

/// Maps the first `len_bytes` of `file`.
pub(crate) fn map(file: &File, len_bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: the file's handle is open; a section without a name is ours alone, and a view at an
    // address the system picks aliases nothing. The view keeps the section.
    let view = unsafe {
        let section = CreateFileMappingW(file.as_raw_handle(), null(), PAGE_READONLY, 0, 0, null());
        if section.is_null() {
            return Err(io::Error::last_os_error());
        }
        let section = OwnedHandle::from_raw_handle(section);
        MapViewOfFile(section.as_raw_handle(), FILE_MAP_READ, 0, 0, len_bytes)
    };
    NonNull::new(view.Value.cast()).ok_or_else(io::Error::last_os_error)
}

/// Ends a mapping.
///
/// # Safety
/// Exactly what [`map`] returned, and nobody uses it any more.
pub(crate) unsafe fn unmap(base: NonNull<u8>, _len_bytes: usize) {
    // SAFETY: as the caller vouches.
    let done =
        unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: base.as_ptr().cast() }) };
    debug_assert_ne!(done, 0);
}
