//! Windows: `FILE_FLAG_NO_BUFFERING` on a handle of its own, made from the open one, so that no path
//! decides what is read. The cache cannot be told to drop a range of a file.

use std::fs::File;
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::path::Path;

use windows_sys::Win32::Foundation::{GENERIC_READ, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_NO_BUFFERING, FILE_FLAG_RANDOM_ACCESS, FILE_SHARE_DELETE, FILE_SHARE_READ,
    FILE_SHARE_WRITE, ReOpenFile,
};

use crate::read::disk::Alignment;

/// Sectors are of 512 or 4096 bytes; the larger suits both.
const SECTOR_BYTES: usize = 4096;

/// Does nothing: it would have to be said when the file is opened.
pub(crate) fn expect_random(_file: &File) {}

/// Does nothing.
pub(crate) fn forget(_file: &File, _offset: u64, _len_bytes: usize) {}

/// Does nothing.
pub(crate) fn forget_all(_file: &File) {}

/// The file of `buffered` once more, for direct reads; `None` where the filesystem refuses.
pub(crate) fn open_direct(_path: &Path, buffered: &File) -> Option<(File, Alignment)> {
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    let flags = FILE_FLAG_NO_BUFFERING | FILE_FLAG_RANDOM_ACCESS;
    // SAFETY: the handle is open as long as its file; a handle that comes back is nobody else's.
    let file = unsafe {
        let handle = ReOpenFile(buffered.as_raw_handle(), GENERIC_READ, share, flags);
        if handle == INVALID_HANDLE_VALUE {
            return None;
        }
        File::from_raw_handle(handle)
    };
    Some((file, Alignment { memory: SECTOR_BYTES, offset: SECTOR_BYTES }))
}
