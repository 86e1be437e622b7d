//! Zeros where reserved address space may be read: it is zeros until it is written.

use super::{release, reserve};
use std::ffi::c_void;

/// Zeros that take no memory until they are written.
pub(crate) struct Zeros {
    base: *mut c_void,
    bytes: usize,
}

impl Zeros {
    /// So many; `None` when the system has no more address space.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        Some(Self { base: reserve(bytes)?, bytes })
    }

    /// Where they are.
    pub(crate) fn base(&self) -> *mut c_void {
        self.base
    }
}

impl Drop for Zeros {
    fn drop(&mut self) {
        // SAFETY: reserved by `new`, with this number of bytes; who reads them keeps `self`.
        unsafe { release(self.base, self.bytes) };
    }
}
