//! C streams over a [`VirtualFile`] by `fopencookie` of glibc and musl.

use super::file::VirtualFile;
use std::ffi::{c_char, c_int, c_void};
use std::io;

/// Opens a stream that calls back into `file`, and frees it when closed.
///
/// # Safety
/// `file` must come from a box that the stream may take over; on an error it stays the caller's.
pub(super) unsafe fn open(file: *mut VirtualFile) -> io::Result<*mut libc::FILE> {
    let functions = CookieFunctions { read, write: None, seek, close };
    // SAFETY: the functions treat the cookie as the virtual file it is.
    let stream = unsafe { fopencookie(file.cast(), c"rb".as_ptr(), functions) };
    if stream.is_null() { Err(io::Error::last_os_error()) } else { Ok(stream) }
}

/// `cookie_io_functions_t` of their stdio.h.
#[repr(C)]
struct CookieFunctions {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize,
    write: Option<unsafe extern "C" fn()>,
    seek: unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(
        cookie: *mut c_void,
        mode: *const c_char,
        functions: CookieFunctions,
    ) -> *mut libc::FILE;
}

unsafe extern "C" fn read(cookie: *mut c_void, out: *mut c_char, len: usize) -> isize {
    // SAFETY: stdio calls with our cookie and a buffer of `len` bytes, one call at a time.
    let result = unsafe { (*cookie.cast::<VirtualFile>()).read(out.cast(), len) };
    result.map_or(-1, |got| got.len() as isize)
}

unsafe extern "C" fn seek(cookie: *mut c_void, offset: *mut i64, origin: c_int) -> c_int {
    // SAFETY: stdio passes our cookie and a valid place for the position.
    unsafe {
        match (*cookie.cast::<VirtualFile>()).seek(*offset, origin) {
            Some(position) => {
                *offset = position as i64;
                0
            }
            None => -1,
        }
    }
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    // SAFETY: the cookie is the box handed to `open`; stdio closes once.
    drop(unsafe { Box::from_raw(cookie.cast::<VirtualFile>()) });
    0
}
