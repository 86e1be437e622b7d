//! The library that called us, and ggml's functions in it and what it depends on.

use super::error::NotThisHost;
use crate::api;
use crate::system::library;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

/// A library of the host. It stays loaded: the handle is never given back.
pub(super) struct Library(NonNull<c_void>);

impl Library {
    /// This program as a host.
    #[cfg(all(test, feature = "llama"))]
    pub(super) fn this_program() -> Self {
        Self(library::this_program().expect("a program has itself"))
    }

    /// Where a function is; null for none.
    pub(super) fn find(&self, name: &CStr) -> *mut c_void {
        // SAFETY: a live handle.
        unsafe { library::find(self.0, name) }
    }
}

/// Has the ggml around the address `caller` load the backend at `path`; whether it did.
///
/// # Safety
/// As [`super::recognise`]; the file is a backend of ggml's.
pub unsafe fn load_other(caller: *const c_void, path: &CStr) -> bool {
    type Load = unsafe extern "C" fn(*const c_char) -> *mut c_void;
    // SAFETY: by the caller; ggml's function of this name takes a path and gives a registry, or
    // null.
    unsafe {
        let Some(library) = library::around(caller).map(Library) else { return false };
        let load = library.find(c"ggml_backend_load");
        !load.is_null() && !std::mem::transmute::<*mut c_void, Load>(load)(path.as_ptr()).is_null()
    }
}

/// The library around the address `caller`, with the table of functions filled from it.
///
/// # Safety
/// `caller` is an address in a library that has ggml, or depends on it.
pub(super) unsafe fn find(caller: *const c_void) -> Result<Library, NotThisHost> {
    // SAFETY: by the caller.
    let handle = unsafe { library::around(caller) };
    let library = Library(handle.ok_or(NotThisHost::NoCaller)?);
    // SAFETY: functions of the ggml that called us, by their names; it stays loaded.
    unsafe { api::look_up(&|name| library.find(name)) }.map_err(NotThisHost::Function)?;
    Ok(library)
}
