//! A stack of synthetic experts in ggml's memory, and ggml's memory as an owned value. The
//! weights mean nothing; they are the same every time.

use llama_cpp_sys_2 as sys;
use motley_model::gguf::GgmlType;
use std::ptr::{NonNull, null, null_mut};

/// Rows of different weights; the others repeat them.
const DISTINCT_ROWS: usize = 16;

/// Equal experts of three matrices each: gate and up `[hidden, width]`, down `[width, hidden]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) hidden: i64,
    pub(crate) width: i64,
    pub(crate) experts: i64,
    pub(crate) ty: GgmlType,
}

/// The experts.
pub(crate) struct Stack {
    pub(crate) shape: Shape,
    /// Gate, up, down.
    pub(crate) weights: [*mut sys::ggml_tensor; 3],
    _memory: Memory,
}

// SAFETY: the tensors are not changed after `new`, and their bytes are only read.
unsafe impl Send for Stack {}
// SAFETY: as above.
unsafe impl Sync for Stack {}

impl Stack {
    /// `None` when there is no memory.
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        let Shape { hidden, width, experts, ty } = shape;
        let mut memory = Memory::new(4)?;
        let weights = [(hidden, width), (hidden, width), (width, hidden)]
            .map(|(row, rows)| memory.tensor(ty.id(), [row, rows, experts]));
        memory.allocate()?;
        weights.iter().for_each(|weight| fill(*weight));
        Some(Self { shape, weights, _memory: memory })
    }
}

/// Tensors and one graph, with their bytes in the CPU's memory.
pub(crate) struct Memory {
    context: NonNull<sys::ggml_context>,
    buffer: sys::ggml_backend_buffer_t,
}

impl Memory {
    /// Room for `count` tensors and one graph; no bytes yet.
    pub(crate) fn new(count: usize) -> Option<Self> {
        // SAFETY: sizes of ggml's own structs, and a context without data.
        let context = unsafe {
            let mem_size = count * sys::ggml_tensor_overhead() + sys::ggml_graph_overhead();
            let (mem_buffer, no_alloc) = (null_mut(), true);
            sys::ggml_init(sys::ggml_init_params { mem_size, mem_buffer, no_alloc })
        };
        Some(Self { context: NonNull::new(context)?, buffer: null_mut() })
    }

    pub(crate) fn context(&self) -> *mut sys::ggml_context {
        self.context.as_ptr()
    }

    pub(crate) fn tensor(&self, ty: sys::ggml_type, [a, b, c]: [i64; 3]) -> *mut sys::ggml_tensor {
        // SAFETY: the context is live and was made with room for its tensors.
        unsafe { sys::ggml_new_tensor_3d(self.context(), ty, a, b, c) }
    }

    /// Bytes for every tensor so far.
    pub(crate) fn allocate(&mut self) -> Option<()> {
        // SAFETY: the tensors of the context have no bytes yet; the type is a static of ggml's.
        self.buffer = unsafe {
            let memory = sys::ggml_backend_cpu_buffer_type();
            sys::ggml_backend_alloc_ctx_tensors_from_buft(self.context(), memory)
        };
        (!self.buffer.is_null()).then_some(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: made once, freed once, bytes before tensors; freeing no buffer is nothing.
        unsafe {
            sys::ggml_backend_buffer_free(self.buffer);
            sys::ggml_free(self.context());
        }
    }
}

/// Writes all of a tensor, which must have its bytes.
pub(crate) fn set<T: Copy>(tensor: *mut sys::ggml_tensor, values: &[T]) {
    // SAFETY: as many bytes as the tensor has, which is checked.
    unsafe {
        assert_eq!(sys::ggml_nbytes(tensor), size_of_val(values), "data of the tensor's size");
        sys::ggml_backend_tensor_set(tensor, values.as_ptr().cast(), 0, size_of_val(values));
    }
}

/// Values around zero of the size weights have.
pub(crate) fn waves(count: usize) -> Vec<f32> {
    (0..count).map(|n| 0.05 * (0.71 * n as f32).sin() * (0.013 * n as f32).cos()).collect()
}

/// Writes [`DISTINCT_ROWS`] quantised rows, again and again.
fn fill(weight: *mut sys::ggml_tensor) {
    // SAFETY: the weight is live and has its bytes; the buffer has room for the rows ggml writes.
    let (total, rows) = unsafe {
        let (ty, row) = ((*weight).type_, (*weight).ne[0]);
        let values = waves(row as usize * DISTINCT_ROWS);
        let mut rows = vec![0_u8; sys::ggml_row_size(ty, row) * DISTINCT_ROWS];
        let (from, to) = (values.as_ptr(), rows.as_mut_ptr().cast());
        sys::ggml_quantize_chunk(ty, from, to, 0, DISTINCT_ROWS as i64, row, null());
        (sys::ggml_nbytes(weight), rows)
    };
    let mut all = rows.repeat(total.div_ceil(rows.len()));
    all.truncate(total);
    set(weight, &all);
}
