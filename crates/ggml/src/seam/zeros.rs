//! A buffer type whose tensors are zeros in pages nobody has written: a model without weights, to
//! try its header on. Takes address space, and memory for nothing but what is computed.
//!
//! While a model loads, the type says that it is no host memory, so that the loader hands every
//! tensor's bytes to `set_tensor`, which drops them. Afterwards it is host memory, and the CPU
//! computes with it.

use super::reserve;
use super::shelf::OwnType;
use crate::api;
use crate::api::abi::BufferType;
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The type and its state; both live until the process ends, as ggml's own types do.
pub(crate) struct ZeroMemory {
    buft: *mut BufferType,
    loaded: &'static AtomicBool,
}

impl ZeroMemory {
    pub(crate) fn new() -> Self {
        let loaded: &'static AtomicBool = Box::leak(Box::default());
        let (buft, _) = OwnType {
            get_name,
            alloc_buffer: reserve::alloc_buffer,
            get_alignment: reserve::get_alignment,
            is_host,
            context: std::ptr::from_ref(loaded).cast_mut().cast(),
        }
        .on_a_shelf();
        Self { buft, loaded }
    }

    pub(crate) fn buffer_type(&self) -> api::ggml_backend_buffer_type_t {
        self.buft.cast()
    }

    /// The model is loaded: from now on this is host memory.
    pub(crate) fn loaded(&self) {
        self.loaded.store(true, Relaxed);
    }
}

unsafe extern "C" fn get_name(_: *mut BufferType) -> *const c_char {
    c"MOTLEY_ZEROS".as_ptr()
}

unsafe extern "C" fn is_host(buft: *mut BufferType) -> bool {
    // SAFETY: ggml passes our type, whose context is the state it was made with.
    unsafe { &*(*buft).context.cast::<AtomicBool>() }.load(Relaxed)
}
