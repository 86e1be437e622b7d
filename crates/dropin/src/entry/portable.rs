//! Systems and processors on which nobody has found out who calls: the host goes on without us.

use crate::enter::enter;
use std::ffi::c_void;
use std::ptr::null;

/// Enters from nowhere, which is no host that is known, and says so.
///
/// # Safety
/// Only a ggml that loads backends calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_init() -> *mut c_void {
    enter(null())
}
