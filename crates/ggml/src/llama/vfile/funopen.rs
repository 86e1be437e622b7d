//! C streams over a [`VirtualFile`] by `funopen` of macOS and Android.

use super::file::VirtualFile;
use std::ffi::{c_char, c_int, c_void};
use std::io;

/// Opens a stream that calls back into `file`, and frees it when closed.
///
/// # Safety
/// `file` must come from a box that the stream may take over; on an error it stays the caller's.
pub(super) unsafe fn open(file: *mut VirtualFile) -> io::Result<*mut libc::FILE> {
    // SAFETY: the functions treat the cookie as the virtual file it is.
    let stream = unsafe { funopen(file.cast(), Some(read), None, Some(seek), Some(close)) };
    if stream.is_null() { Err(io::Error::last_os_error()) } else { Ok(stream) }
}

type Read = unsafe extern "C" fn(*mut c_void, *mut c_char, c_int) -> c_int;
type Write = unsafe extern "C" fn(*mut c_void, *const c_char, c_int) -> c_int;
type Seek = unsafe extern "C" fn(*mut c_void, i64, c_int) -> i64;
type Close = unsafe extern "C" fn(*mut c_void) -> c_int;

unsafe extern "C" {
    fn funopen(
        cookie: *mut c_void,
        read: Option<Read>,
        write: Option<Write>,
        seek: Option<Seek>,
        close: Option<Close>,
    ) -> *mut libc::FILE;
}

unsafe extern "C" fn read(cookie: *mut c_void, out: *mut c_char, len: c_int) -> c_int {
    // SAFETY: stdio calls with our cookie and a buffer of `len` bytes, one call at a time.
    let result = unsafe { (*cookie.cast::<VirtualFile>()).read(out.cast(), len.max(0) as usize) };
    result.map_or(-1, |got| got.len() as c_int)
}

unsafe extern "C" fn seek(cookie: *mut c_void, offset: i64, origin: c_int) -> i64 {
    // SAFETY: stdio passes our cookie.
    let position = unsafe { (*cookie.cast::<VirtualFile>()).seek(offset, origin) };
    position.map_or(-1, |position| position as i64)
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    // SAFETY: the cookie is the box handed to `open`; stdio closes once.
    drop(unsafe { Box::from_raw(cookie.cast::<VirtualFile>()) });
    0
}
