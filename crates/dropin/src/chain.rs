//! A backend that was to be loaded in our place: ggml reads one name from `GGML_BACKEND_PATH`, and
//! some programs set it themselves. `motley env` puts theirs into `MOTLEY_BACKEND_PATH`, and it is
//! loaded before us.

use std::ffi::CString;

/// The variable that names it.
pub(crate) const VARIABLE: &str = "MOTLEY_BACKEND_PATH";

/// The other backend's path, if one is named.
pub(crate) fn other() -> Option<CString> {
    let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
    CString::new(path.into_encoded_bytes()).ok()
}
