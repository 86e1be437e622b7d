//! A C stream over a [`VirtualFile`] by macOS's `funopen`.

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
        // SAFETY: the functions treat the cookie as the box it is; `close` frees it.
        let stream = unsafe { funopen(cookie.cast(), Some(read), None, Some(seek), Some(close)) };
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
    result.map_or(-1, |got| got as c_int)
}

unsafe extern "C" fn seek(cookie: *mut c_void, offset: i64, origin: c_int) -> i64 {
    // SAFETY: stdio passes our cookie.
    let position = unsafe { (*cookie.cast::<VirtualFile>()).seek(offset, origin) };
    position.map_or(-1, |position| position as i64)
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    // SAFETY: the cookie is the box made in `open`; stdio closes once.
    drop(unsafe { Box::from_raw(cookie.cast::<VirtualFile>()) });
    0
}
