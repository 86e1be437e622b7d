//! A buffer type whose tensors lie in a model's mapped files: the bytes are computed where they
//! are, and llama.cpp never maps a file itself. One type per model.
//!
//! While a model loads, the type says that it is no host memory, so that the loader hands every
//! tensor's bytes to `set_tensor` and writes none of them itself; what it hands over are the bytes
//! of a virtual file that skips these tensors, and they are dropped. Afterwards the type is host
//! memory, and every backend that reads host memory takes it.

use super::bus::{self, Watched};
use super::reserve;
use super::shelf::OwnType;
use crate::api;
use crate::api::abi::{Buffer, BufferInterface, BufferType, Device};
use crate::system::memory;
use motley_model::{FileRange, ModelSpec};
use motley_store::MappedFiles;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Of addresses that nobody uses: places are those of the file.
const ALIGNMENT_BYTES: usize = 32;

/// The tensors of one model in its mapped files, and ggml's view of that memory. The model must be
/// freed before.
#[derive(Debug)]
pub(crate) struct MappedMemory {
    buft: *mut BufferType,
    shelf: *mut Device,
}

// SAFETY: what the pointers lead to is reached by atomics, or not changed after it was made.
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
unsafe impl Sync for MappedMemory {}

/// What the buffer type knows.
struct State {
    files: MappedFiles,
    watched: Vec<Watched>,
    places: HashMap<Vec<u8>, FileRange>,
    loaded: AtomicBool,
}

impl MappedMemory {
    /// The tensors of `spec` in `files`; `None` when the system refuses to watch over them.
    pub(crate) fn new(spec: &ModelSpec, files: MappedFiles) -> Option<Self> {
        let watched = files.whole().map(bus::watch).collect::<Option<Vec<_>>>()?;
        let place =
            |tensor: &motley_model::SpecTensor| (tensor.name.clone().into_bytes(), tensor.range);
        let state = State {
            places: spec.tensors.iter().map(place).collect(),
            files,
            watched,
            loaded: AtomicBool::new(false),
        };
        let context = Box::into_raw(Box::new(state)).cast();
        let (buft, shelf) =
            OwnType { get_name, alloc_buffer, get_alignment, is_host, context }.on_a_shelf();
        Some(Self { buft, shelf })
    }

    pub(crate) fn buffer_type(&self) -> api::ggml_backend_buffer_type_t {
        self.buft.cast()
    }

    /// The model is loaded: from now on this is host memory.
    pub(crate) fn loaded(&self) {
        self.state().loaded.store(true, Relaxed);
    }

    /// The first file that is not what it was when it was opened.
    pub(crate) fn changed(&self) -> Option<&Path> {
        let State { files, watched, .. } = self.state();
        let cut = watched.iter().position(Watched::faulted).and_then(|index| files.path(index));
        cut.or_else(|| files.changed())
    }

    fn state(&self) -> &State {
        // SAFETY: the type was made in `new` and lives as long as `self`.
        unsafe { state(self.buft) }
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: all three were made in `new`; ggml is done with them when the model is freed.
        unsafe {
            drop(Box::from_raw((*self.buft).context.cast::<State>()));
            drop(Box::from_raw(self.buft));
            drop(Box::from_raw(self.shelf));
        }
    }
}

/// # Safety
/// `buft` is one of ours and lives for `'s`.
unsafe fn state<'s>(buft: *mut BufferType) -> &'s State {
    // SAFETY: by the caller; the context is set once and only read.
    unsafe { &*(*buft).context.cast::<State>() }
}

unsafe extern "C" fn get_name(_: *mut BufferType) -> *const c_char {
    c"MOTLEY_MAPPED".as_ptr()
}

unsafe extern "C" fn get_alignment(_: *mut BufferType) -> usize {
    ALIGNMENT_BYTES
}

unsafe extern "C" fn is_host(buft: *mut BufferType) -> bool {
    // SAFETY: ggml passes our type.
    unsafe { state(buft) }.loaded.load(Relaxed)
}

/// A buffer of any size: ggml gives its tensors places in it, which `init_tensor` exchanges.
unsafe extern "C" fn alloc_buffer(
    buft: *mut BufferType,
    size: usize,
) -> api::ggml_backend_buffer_t {
    let iface = BufferInterface {
        free_buffer: None,
        get_base: Some(get_base),
        init_tensor: Some(init_tensor),
        memset_tensor: None,
        set_tensor: Some(set_tensor),
        get_tensor: Some(reserve::get_tensor),
        set_tensor_2d: None,
        get_tensor_2d: None,
        cpy_tensor: None,
        clear: Some(clear),
        reset: None,
    };
    // SAFETY: `buft` is the live type ggml called us through.
    unsafe { api::ggml_backend_buffer_init(buft, iface, null_mut(), size) }
}

/// Where the first file lies: an address that is not null, for sums nobody follows.
unsafe extern "C" fn get_base(buffer: *mut Buffer) -> *mut c_void {
    // SAFETY: ggml passes one of our live buffers.
    let state = unsafe { state((*buffer).buft) };
    let base = state.files.whole().next().map_or(std::ptr::dangling(), <[u8]>::as_ptr);
    base.cast_mut().cast()
}

/// The tensor's place in its file. A view's has been computed from its source's.
unsafe extern "C" fn init_tensor(
    buffer: *mut Buffer,
    tensor: *mut api::ggml_tensor,
) -> api::ggml_status {
    // SAFETY: ggml passes one of our live buffers and a live tensor of it, whose name ends with NUL.
    unsafe {
        if !(*tensor).view_src.is_null() {
            return api::GGML_STATUS_SUCCESS;
        }
        let state = state((*buffer).buft);
        let name = CStr::from_ptr((*tensor).name.as_ptr()).to_bytes();
        let bytes = state.places.get(name).and_then(|range| state.files.get(*range));
        match bytes {
            Some(bytes) if api::ggml_nbytes(tensor) <= bytes.len() => {
                (*tensor).data = bytes.as_ptr().cast_mut().cast();
                api::GGML_STATUS_SUCCESS
            }
            _ => api::GGML_STATUS_FAILED,
        }
    }
}

/// The loader comes by here piece by piece: a good moment to bring the file's pages in, which
/// would otherwise come one by one while the first tokens are computed.
unsafe extern "C" fn set_tensor(
    _: *mut Buffer,
    tensor: *mut api::ggml_tensor,
    _: *const c_void,
    offset: usize,
    size: usize,
) {
    // SAFETY: ggml checked offset and size against the tensor, which lies in the mapping.
    bring_in(unsafe { (*tensor).data.cast::<u8>().add(offset) }, size);
}

/// Asks for pages; whether they come is the system's business.
fn bring_in(start: *mut u8, len_bytes: usize) {
    let before = start.addr() % memory::page_bytes();
    memory::bring_in(start.wrapping_sub(before).cast(), len_bytes + before);
}

/// Files are not cleared.
unsafe extern "C" fn clear(_: *mut Buffer, _: u8) {}
