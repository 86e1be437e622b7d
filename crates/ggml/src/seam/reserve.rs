//! A buffer type that holds expert weights as reserved address space: every tensor
//! gets its place, no byte is read and no page is used until an executor fills it.
//! Says nothing about when to fill; that is the executor's business.
//!
//! The type is *not* a host type, so llama.cpp neither maps the file into it nor
//! lets another backend touch it; only Motley's device accepts it.

use super::shelf::OwnType;
use crate::api;
use crate::api::abi::{Buffer, BufferInterface, BufferType, Device};
use crate::system::memory;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

/// ggml's quantised kernels load whole vectors; this is the CPU buffer's own alignment.
const ALIGNMENT_BYTES: usize = 64;
/// What tells the type from others.
const NAME: &CStr = c"MOTLEY_EXPERTS";

/// Makes the buffer type; lives until the process ends, as ggml's do. Its device is
/// the [`super::shelf`], which only the loader meets.
pub(crate) fn buffer_type() -> *mut BufferType {
    own_type(alloc_buffer, null_mut()).0
}

/// The same with an allocation and a context of one's own; both live until somebody frees them.
pub(crate) fn own_type(
    alloc_buffer: unsafe extern "C" fn(*mut BufferType, usize) -> api::ggml_backend_buffer_t,
    context: *mut c_void,
) -> (*mut BufferType, *mut Device) {
    OwnType { get_name: type_name, alloc_buffer, get_alignment, is_host, context }.on_a_shelf()
}

/// Whether `buffer` is one of ours.
///
/// # Safety
/// `buffer` is null or a live ggml buffer.
pub(crate) unsafe fn owns(buffer: api::ggml_backend_buffer_t) -> bool {
    // SAFETY: the caller vouches for the buffer, and so for its type.
    unsafe {
        if buffer.is_null() {
            return false;
        }
        is_one(api::ggml_backend_buffer_get_type(buffer).cast())
    }
}

/// Whether `buft` is one of ours.
///
/// # Safety
/// `buft` is a live ggml buffer type.
pub(crate) unsafe fn is_one(buft: *mut BufferType) -> bool {
    // SAFETY: by the caller; every type has a name that ends with NUL.
    unsafe { CStr::from_ptr(((*buft).iface.get_name)(buft)) == NAME }
}

pub(crate) unsafe extern "C" fn type_name(_: *mut BufferType) -> *const c_char {
    NAME.as_ptr()
}

pub(crate) unsafe extern "C" fn get_alignment(_: *mut BufferType) -> usize {
    ALIGNMENT_BYTES
}

unsafe extern "C" fn is_host(_: *mut BufferType) -> bool {
    false
}

/// Address space for `size` bytes, of which none is there; `None` when the system has no more.
pub(crate) fn address_space(size: usize) -> Option<*mut c_void> {
    memory::reserve(size)
}

/// Address space that nobody reads before it is filled.
pub(crate) unsafe extern "C" fn alloc_buffer(
    buft: *mut BufferType,
    size: usize,
) -> api::ggml_backend_buffer_t {
    let Some(base) = address_space(size) else { return null_mut() };
    let iface = BufferInterface {
        free_buffer: Some(free_buffer),
        get_base: Some(get_base),
        init_tensor: None,
        memset_tensor: Some(memset_tensor),
        set_tensor: Some(set_tensor),
        get_tensor: Some(get_tensor),
        set_tensor_2d: None,
        get_tensor_2d: None,
        cpy_tensor: None,
        clear: Some(clear),
        reset: None,
    };
    // SAFETY: `buft` is the live type ggml called us through; the buffer takes the
    // mapping as its context and gives it back in `free_buffer`.
    unsafe { api::ggml_backend_buffer_init(buft, iface, base, size) }
}

unsafe extern "C" fn free_buffer(buffer: *mut Buffer) {
    // SAFETY: `context` and `size` are what `alloc_buffer` mapped.
    unsafe { memory::release((*buffer).context, (*buffer).size) };
}

unsafe extern "C" fn get_base(buffer: *mut Buffer) -> *mut c_void {
    // SAFETY: ggml passes one of our live buffers.
    unsafe { (*buffer).context }
}

/// The loader "sets" expert tensors from bytes the virtual file never produced.
pub(super) unsafe extern "C" fn set_tensor(
    _: *mut Buffer,
    _: *mut api::ggml_tensor,
    _: *const c_void,
    _: usize,
    _: usize,
) {
}

unsafe extern "C" fn memset_tensor(
    _: *mut Buffer,
    tensor: *mut api::ggml_tensor,
    value: u8,
    offset: usize,
    size: usize,
) {
    // SAFETY: ggml checked offset and size against the tensor, which lies in the mapping.
    unsafe { (*tensor).data.cast::<u8>().add(offset).write_bytes(value, size) }
}

pub(super) unsafe extern "C" fn get_tensor(
    _: *mut Buffer,
    tensor: *const api::ggml_tensor,
    data: *mut c_void,
    offset: usize,
    size: usize,
) {
    // SAFETY: as `memset_tensor`; `data` has room for `size` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(
            (*tensor).data.cast::<u8>().add(offset),
            data.cast::<u8>(),
            size,
        );
    }
}

/// Fresh anonymous pages are zero already; clearing would make them resident.
pub(super) unsafe extern "C" fn clear(_: *mut Buffer, _: u8) {}
