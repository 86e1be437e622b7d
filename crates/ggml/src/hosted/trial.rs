//! A host's ggml loaded on trial, so that it loads the backends it would load: for a child process
//! whose end harms nobody.

use crate::system::library;
use std::ffi::{CString, c_char, c_void};
use std::path::Path;

/// Loads the library `ggml` and has it load every backend, as a host does when it starts. Whatever
/// the libraries do, they do in this process.
pub fn load_backends(ggml: &Path) -> Result<(), String> {
    let folder = ggml.parent().unwrap_or(Path::new("."));
    let folder = CString::new(folder.as_os_str().as_encoded_bytes());
    let folder = folder.map_err(|error| error.to_string())?;
    // SAFETY: loading runs the library's own beginnings, which is what the caller asks for; the
    // functions are ggml's of these names.
    unsafe {
        let library = library::load(ggml)?;
        let load = library::find(library, c"ggml_backend_load_all_from_path");
        if load.is_null() {
            return Err("it has no function that loads backends".into());
        }
        type Load = unsafe extern "C" fn(*const c_char);
        std::mem::transmute::<*mut c_void, Load>(load)(folder.as_ptr());
    }
    Ok(())
}
