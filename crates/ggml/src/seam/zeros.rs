//! A buffer type whose tensors are zeros in pages nobody has written: a model without weights, to
//! try its header on. Takes address space, and memory for nothing but what is computed.
//!
//! While a model loads, the type says that it is no host memory, so that the loader hands every
//! tensor's bytes to `set_tensor`, which drops them. Afterwards it is host memory, and the CPU
//! computes with it.

use super::reserve;
use super::shelf::OwnType;
use crate::api;
use crate::api::abi::{Buffer, BufferInterface, BufferType};
use crate::system::memory::Zeros;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
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
            alloc_buffer,
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

/// Zeros that stay zeros: what is set is dropped.
unsafe extern "C" fn alloc_buffer(
    buft: *mut BufferType,
    size: usize,
) -> api::ggml_backend_buffer_t {
    let Some(zeros) = Zeros::new(size) else { return null_mut() };
    let iface = BufferInterface {
        free_buffer: Some(free_buffer),
        get_base: Some(get_base),
        init_tensor: None,
        memset_tensor: Some(memset_tensor),
        set_tensor: Some(reserve::set_tensor),
        get_tensor: Some(reserve::get_tensor),
        set_tensor_2d: None,
        get_tensor_2d: None,
        cpy_tensor: None,
        clear: Some(reserve::clear),
        reset: None,
    };
    let context = Box::into_raw(Box::new(zeros)).cast();
    // SAFETY: `buft` is the live type ggml called us through; the buffer takes the zeros as its
    // context and gives them back in `free_buffer`.
    unsafe { api::ggml_backend_buffer_init(buft, iface, context, size) }
}

unsafe extern "C" fn free_buffer(buffer: *mut Buffer) {
    // SAFETY: the context is the box of `alloc_buffer`; ggml frees a buffer once.
    drop(unsafe { Box::from_raw((*buffer).context.cast::<Zeros>()) });
}

unsafe extern "C" fn get_base(buffer: *mut Buffer) -> *mut c_void {
    // SAFETY: ggml passes one of our live buffers.
    unsafe { &*(*buffer).context.cast::<Zeros>() }.base()
}

unsafe extern "C" fn memset_tensor(
    _: *mut Buffer,
    _: *mut api::ggml_tensor,
    _: u8,
    _: usize,
    _: usize,
) {
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_zeros_than_memory_are_there_to_be_read() {
        const BYTES: usize = 1 << 36;
        let zeros = Zeros::new(BYTES).expect("address space of 64 GiB");
        let base = zeros.base().cast::<u8>();
        for place in [0, BYTES / 2, BYTES - 1] {
            // SAFETY: inside of what was asked for.
            assert_eq!(unsafe { base.add(place).read_volatile() }, 0);
        }
    }
}
