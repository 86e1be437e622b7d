//! Ending the process while threads compute.

/// Ends the process at once. Returning from `main` or `exit` would destroy ggml's C++ objects
/// while threads that compute still use them: a crash instead of `code`. Nothing is flushed.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: runs nothing of this process any more.
    unsafe { libc::_exit(code) }
}
