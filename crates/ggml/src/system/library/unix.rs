//! By the dynamic linker.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// This program.
#[cfg(all(test, feature = "llama"))]
pub(crate) fn this_program() -> Option<NonNull<c_void>> {
    // SAFETY: a handle of the program itself, which stays.
    NonNull::new(unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_NOW) })
}

/// Where a function of `library` or what it depends on is; null for none.
///
/// # Safety
/// `library` came from here.
pub(crate) unsafe fn find(library: NonNull<c_void>, name: &CStr) -> *mut c_void {
    // SAFETY: a live handle, by the caller, and a name that ends.
    unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) }
}

/// The library around an address.
///
/// # Safety
/// `address` is one of this process.
pub(crate) unsafe fn around(address: *const c_void) -> Option<NonNull<c_void>> {
    // SAFETY: by the caller; the path is that of a loaded library, which is only found again.
    unsafe {
        let place = place(address)?;
        NonNull::new(libc::dlopen(place.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD))
    }
}

/// The file of the library around an address.
///
/// # Safety
/// `address` is one of this process.
pub(crate) unsafe fn path_around(address: *const c_void) -> Option<PathBuf> {
    // SAFETY: by the caller; the name lives as long as the library is loaded, which is for good.
    let name = unsafe { CStr::from_ptr(place(address)?.dli_fname) };
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

/// # Safety
/// `address` is one of this process.
unsafe fn place(address: *const c_void) -> Option<libc::Dl_info> {
    let mut place = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: all zero is a value of this struct of pointers, and dladdr fills it in.
    let (found, place) =
        unsafe { (libc::dladdr(address, place.as_mut_ptr()) != 0, place.assume_init()) };
    (found && !place.dli_fname.is_null()).then_some(place)
}

/// Loads a library; what is in it is this process's alone.
///
/// # Safety
/// Runs the library's own beginnings.
pub(crate) unsafe fn load(path: &Path) -> Result<NonNull<c_void>, String> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: by the caller.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    NonNull::new(library).ok_or_else(last_error)
}

fn last_error() -> String {
    // SAFETY: the text lives until the next call of its kind on this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "it cannot be loaded".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}
