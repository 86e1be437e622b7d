//! x86-64 as Unix calls: the return address is on the stack.

use crate::enter::enter;
use std::ffi::c_void;

/// Enters with the address that the call returns to.
///
/// # Safety
/// Only a ggml that loads backends calls it.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_init() -> *mut c_void {
    core::arch::naked_asm!("mov rdi, [rsp]", "jmp {enter}", enter = sym enter)
}
