//! By the loader of Windows.

use std::ffi::{CStr, OsString, c_void};
use std::io;
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
    GetModuleFileNameW, GetModuleHandleExW, GetProcAddress, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS,
    LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, LoadLibraryExW,
};

/// Longest path the system knows, in units of 16 bits.
const PATH_MAX: usize = 1 << 15;

/// This program.
#[cfg(all(test, feature = "llama"))]
pub(crate) fn this_program() -> Option<NonNull<c_void>> {
    // SAFETY: asks for the module of the program, which stays.
    let module =
        unsafe { windows_sys::Win32::System::LibraryLoader::GetModuleHandleW(std::ptr::null()) };
    NonNull::new(module)
}

/// Where a function of `library` is; null for none.
///
/// # Safety
/// `library` came from here.
pub(crate) unsafe fn find(library: NonNull<c_void>, name: &CStr) -> *mut c_void {
    // SAFETY: a live module, by the caller, and a name that ends.
    let found = unsafe { GetProcAddress(library.as_ptr(), name.as_ptr().cast()) };
    found.map_or(null_mut(), |function| function as *mut c_void)
}

/// The library around an address.
///
/// # Safety
/// `address` is one of this process.
pub(crate) unsafe fn around(address: *const c_void) -> Option<NonNull<c_void>> {
    let flags =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module: HMODULE = null_mut();
    // SAFETY: with this flag the name is an address, of which nothing is read.
    unsafe { GetModuleHandleExW(flags, address.cast(), &raw mut module) };
    NonNull::new(module)
}

/// The file of the library around an address.
///
/// # Safety
/// `address` is one of this process.
pub(crate) unsafe fn path_around(address: *const c_void) -> Option<PathBuf> {
    let mut path = vec![0_u16; PATH_MAX];
    // SAFETY: by the caller; the path has room for what it is said to have room for.
    let len = unsafe {
        let module = around(address)?;
        GetModuleFileNameW(module.as_ptr(), path.as_mut_ptr(), PATH_MAX as u32)
    };
    path.truncate(len as usize);
    (len > 0).then(|| OsString::from_wide(&path).into())
}

/// Loads a library and what it depends on: from its own folder and the system's, never from the
/// current one.
///
/// # Safety
/// Runs the library's own beginnings.
pub(crate) unsafe fn load(path: &Path) -> Result<NonNull<c_void>, String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    let wide: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    let flags = LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    // SAFETY: by the caller; a path that ends.
    let library = unsafe { LoadLibraryExW(wide.as_ptr(), null_mut(), flags) };
    NonNull::new(library).ok_or_else(|| io::Error::last_os_error().to_string())
}
