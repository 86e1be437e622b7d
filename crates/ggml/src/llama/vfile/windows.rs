//! C streams over a [`VirtualFile`] where the C library has none of one's own, and where llama.cpp
//! reads through the handle beneath a stream: a real file.
//!
//! It is a temporary one that is gone when it is closed. Skipped tensors are holes in it and take no
//! disk; the header and all other tensors are written into it first, a piece at a time. The system
//! keeps such a file in its cache as long as there is room, and puts it on the disk when there is not.

use super::file::{Delivered, VirtualFile};
use crate::system::sparse;
use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Seek};
use std::os::windows::fs::FileExt;
use std::os::windows::io::{FromRawHandle, IntoRawHandle, OwnedHandle, RawHandle};

/// Bytes that are on their way from file to file.
const PIECE_BYTES: usize = 4 << 20;
/// How the C library names a handle it cannot take.
const NO_DESCRIPTOR: c_int = -1;

/// Opens a stream over a file with what `file` holds, and frees `file`.
///
/// # Safety
/// `file` must come from a box that the stream may take over; on an error it stays the caller's.
pub(super) unsafe fn open(file: *mut VirtualFile) -> io::Result<*mut libc::FILE> {
    // SAFETY: a live box that is nobody else's, by the caller.
    let written = write_out(unsafe { &mut *file })?;
    let stream = stream_over(written)?;
    // SAFETY: handed over by the caller, and not read any more.
    drop(unsafe { Box::from_raw(file) });
    Ok(stream)
}

/// All of `file` but the bytes of skipped tensors, in a new file of the same length.
fn write_out(file: &mut VirtualFile) -> io::Result<File> {
    let bytes = file.seek(0, libc::SEEK_END).unwrap_or_default();
    file.seek(0, libc::SEEK_SET);
    let written = sparse::temporary(bytes)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    loop {
        // SAFETY: the piece has room for what is asked for.
        let delivered = unsafe { file.read(piece.as_mut_ptr(), piece.len()) }?;
        match delivered {
            Delivered::Bytes(0) => return Ok(written),
            Delivered::Bytes(len) => {
                write_all_at(&written, &piece[..len], offset).map_err(no_room)?;
            }
            Delivered::Skipped(_) => {}
        }
        offset += delivered.len() as u64;
    }
}

fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let len = file.seek_write(bytes, offset)?;
        if len == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        (bytes, offset) = (&bytes[len..], offset + len as u64);
    }
    Ok(())
}

fn no_room(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let words = format!(
        "the weights that llama.cpp reads are written to a temporary file in {} (TMP names another \
         folder): {error}",
        folder.display()
    );
    io::Error::new(error.kind(), words)
}

/// A stream that closes the file with itself, at its beginning.
fn stream_over(mut file: File) -> io::Result<*mut libc::FILE> {
    // Written with offsets, which move the position all the same.
    file.rewind()?;
    let handle = file.into_raw_handle();
    // SAFETY: an open handle, which the descriptor takes over.
    let descriptor = unsafe {
        libc::open_osfhandle(handle.expose_provenance() as isize, libc::O_RDONLY | libc::O_BINARY)
    };
    if descriptor == NO_DESCRIPTOR {
        return Err(closing(handle));
    }
    // SAFETY: an open descriptor, which the stream takes over, and words that end.
    let stream = unsafe { libc::fdopen(descriptor, c"rb".as_ptr()) };
    if stream.is_null() {
        let error = io::Error::last_os_error();
        // SAFETY: still ours; the handle goes with it.
        unsafe { libc::close(descriptor) };
        return Err(error);
    }
    Ok(stream)
}

/// Why no descriptor was made, and an end to the handle.
fn closing(handle: RawHandle) -> io::Error {
    let error = io::Error::last_os_error();
    // SAFETY: an open handle that nobody else has.
    drop(unsafe { OwnedHandle::from_raw_handle(handle) });
    error
}
