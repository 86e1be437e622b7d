//! A host's ggml loaded on trial, so that it loads the backends it would load: for a child process
//! whose end harms nobody.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Loads the library `ggml` and has it load every backend, as a host does when it starts. Whatever
/// the libraries do, they do in this process.
pub fn load_backends(ggml: &Path) -> Result<(), String> {
    let path = CString::new(ggml.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let folder = ggml.parent().unwrap_or(Path::new("."));
    let folder = CString::new(folder.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: loading runs the library's own beginnings, which is what the caller asks for; the
    // functions are ggml's of these names.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            return Err(last_error());
        }
        let load = libc::dlsym(library, c"ggml_backend_load_all_from_path".as_ptr());
        if load.is_null() {
            return Err("it has no function that loads backends".into());
        }
        type Load = unsafe extern "C" fn(*const c_char);
        std::mem::transmute::<*mut c_void, Load>(load)(folder.as_ptr());
    }
    Ok(())
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
