//! ggml's tensors and memory as owned values: a context of tensors without data, and a
//! buffer of some backend. For what is not part of llama.cpp's graphs.

use crate::api;
use std::ptr::{NonNull, null_mut};

/// A ggml context that holds tensors without data.
pub(crate) struct Tensors(NonNull<api::ggml_context>);

impl Tensors {
    /// Room for `count` tensors and one graph.
    pub(crate) fn new(count: usize) -> Option<Self> {
        // SAFETY: sizes of ggml's own structs, and a context without data.
        let raw = unsafe {
            let mem_size = count * api::ggml_tensor_overhead() + api::ggml_graph_overhead();
            api::ggml_init(api::ggml_init_params {
                mem_size,
                mem_buffer: null_mut(),
                no_alloc: true,
            })
        };
        NonNull::new(raw).map(Self)
    }

    pub(crate) fn tensor(&self, ty: api::ggml_type, [a, b, c]: [i64; 3]) -> *mut api::ggml_tensor {
        // SAFETY: the context is live and was made with room for its tensors.
        unsafe { api::ggml_new_tensor_3d(self.0.as_ptr(), ty, a, b, c) }
    }

    pub(crate) fn raw(&self) -> *mut api::ggml_context {
        self.0.as_ptr()
    }

    /// Memory for all tensors of the context; `None` when the device has too little.
    pub(crate) fn allocate(&self, buffer_type: api::ggml_backend_buffer_type_t) -> Option<Buffer> {
        // SAFETY: both are live; tensors of the context have no data yet.
        let raw =
            unsafe { api::ggml_backend_alloc_ctx_tensors_from_buft(self.0.as_ptr(), buffer_type) };
        NonNull::new(raw).map(Buffer)
    }
}

impl Drop for Tensors {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once; who holds tensors of it holds it too.
        unsafe { api::ggml_free(self.0.as_ptr()) }
    }
}

/// Memory of a context's tensors.
pub(crate) struct Buffer(NonNull<api::ggml_backend_buffer>);

impl Buffer {
    /// `bytes` of memory of this kind without tensors.
    ///
    /// # Safety
    /// `buffer_type` must be live, as ggml's are until the process ends.
    pub(crate) unsafe fn new(
        buffer_type: api::ggml_backend_buffer_type_t,
        bytes: usize,
    ) -> Option<Self> {
        // SAFETY: by the caller.
        NonNull::new(unsafe { api::ggml_backend_buft_alloc_buffer(buffer_type, bytes) }).map(Self)
    }

    pub(crate) fn raw(&self) -> api::ggml_backend_buffer_t {
        self.0.as_ptr()
    }

    /// First byte; an address of this process only for host memory.
    pub(crate) fn base(&self) -> *mut std::ffi::c_void {
        // SAFETY: the buffer is live.
        unsafe { api::ggml_backend_buffer_get_base(self.raw()) }
    }

    /// Bytes the device gave, alignment included.
    pub(crate) fn size_bytes(&self) -> usize {
        // SAFETY: the buffer is live.
        unsafe { api::ggml_backend_buffer_get_size(self.raw()) }
    }

    /// Makes every byte zero.
    pub(crate) fn clear(&self) {
        // SAFETY: the buffer is live and nobody reads it yet.
        unsafe { api::ggml_backend_buffer_clear(self.raw(), 0) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: made by ggml for us, freed once, before its tensors.
        unsafe { api::ggml_backend_buffer_free(self.0.as_ptr()) }
    }
}
