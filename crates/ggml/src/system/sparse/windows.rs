//! Windows: a file is told that it may have holes.

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::ptr::{null, null_mut};
use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::FSCTL_SET_SPARSE;

/// A new file of `bytes` zeros that take no disk. It is this process's alone, in the folder for
/// temporary files, and gone when it is closed.
pub(crate) fn temporary(bytes: u64) -> io::Result<File> {
    let file = tempfile::tempfile()?;
    let mut returned = 0;
    // SAFETY: an open handle; the call takes nothing and gives nothing, and waits until it is done.
    let done = unsafe {
        let (nothing, handle) = (null_mut(), file.as_raw_handle());
        let (taken, given) = ((null(), 0), (null_mut(), 0));
        let returned = &raw mut returned;
        DeviceIoControl(
            handle,
            FSCTL_SET_SPARSE,
            taken.0,
            taken.1,
            given.0,
            given.1,
            returned,
            nothing,
        )
    };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    file.set_len(bytes)?;
    Ok(file)
}
