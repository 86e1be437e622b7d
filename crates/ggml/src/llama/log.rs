//! llama.cpp's log lines as `tracing` events; the last errors are kept so that a
//! failed load can say why.

use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

/// Error lines kept for [`take_errors`].
const MAX_KEPT_ERRORS: usize = 8;

struct Kept {
    partial: String,
    errors: Vec<String>,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept { partial: String::new(), errors: Vec::new() });

/// Routes llama.cpp's and ggml's log here.
pub(crate) fn install() {
    // SAFETY: the callback is a plain function that lives forever.
    unsafe { sys::llama_log_set(Some(on_line), std::ptr::null_mut()) }
}

/// The error lines since the last call, joined; empty when there were none.
pub(crate) fn take_errors() -> String {
    let mut kept = KEPT.lock().expect("no panic holds this lock");
    std::mem::take(&mut kept.errors).join("; ")
}

unsafe extern "C" fn on_line(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    // SAFETY: llama.cpp passes a NUL-terminated string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let mut kept = KEPT.lock().expect("no panic holds this lock");
    kept.partial.push_str(&text);
    if !kept.partial.ends_with('\n') {
        return;
    }
    let line = std::mem::take(&mut kept.partial);
    let line = line.trim_end();
    match level {
        sys::GGML_LOG_LEVEL_ERROR => {
            tracing::debug!(target: "llama", "{line}");
            if kept.errors.len() < MAX_KEPT_ERRORS {
                kept.errors.push(line.to_owned());
            }
        }
        sys::GGML_LOG_LEVEL_WARN => tracing::debug!(target: "llama", "{line}"),
        _ => tracing::trace!(target: "llama", "{line}"),
    }
}
