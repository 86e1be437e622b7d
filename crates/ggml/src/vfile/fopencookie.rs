//! A C stream over a [`VirtualFile`] by glibc's `fopencookie`.

use super::VirtualFile;
use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::ptr::NonNull;

/// An open `FILE*`; closing it frees the virtual file.
pub(crate) struct Stream {
    file: NonNull<libc::FILE>,
}

impl Stream {
    /// Opens `file` for reading.
    pub(crate) fn open(file: VirtualFile) -> io::Result<Self> {
        let cookie = Box::into_raw(Box::new(file));
        let functions = CookieFunctions { read, write: None, seek, close };
        // SAFETY: the functions treat the cookie as the box it is; `close` frees it.
        let stream = unsafe { fopencookie(cookie.cast(), c"rb".as_ptr(), functions) };
        match NonNull::new(stream) {
            Some(file) => Ok(Self { file }),
            None => {
                // SAFETY: the stream was not made, so the box is still ours.
                drop(unsafe { Box::from_raw(cookie) });
                Err(io::Error::last_os_error())
            }
        }
    }

    pub(crate) fn raw(&self) -> *mut libc::FILE {
        self.file.as_ptr()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once; llama.cpp does not close what it is lent.
        unsafe { libc::fclose(self.file.as_ptr()) };
    }
}

/// `cookie_io_functions_t` of glibc's stdio.h.
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
    result.map_or(-1, |got| got as isize)
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
    // SAFETY: the cookie is the box made in `open`; stdio closes once.
    drop(unsafe { Box::from_raw(cookie.cast::<VirtualFile>()) });
    0
}
