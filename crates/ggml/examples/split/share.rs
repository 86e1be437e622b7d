//! Some neurons of every expert of a stack, computed by a backend and pool of their own. All
//! neurons on one pool are the whole block.

use crate::stack::{Memory, Stack, set, waves};
use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::ptr::{NonNull, null};
use std::sync::Arc;

/// A graph over `tokens` rows for each of some experts, with the backend that computes it.
pub(crate) struct Share {
    stack: Arc<Stack>,
    tokens: usize,
    ids_values: Vec<i32>,
    graph: *mut sys::ggml_cgraph,
    ids: *mut sys::ggml_tensor,
    output: *mut sys::ggml_tensor,
    backend: PooledBackend,
    _memory: Memory,
}

// SAFETY: it owns all it points at but the stack, which is only read and kept alive.
unsafe impl Send for Share {}

impl Share {
    /// These neurons of every expert, for `experts` experts with `tokens` rows each.
    pub(crate) fn new(
        stack: &Arc<Stack>,
        neurons: Range<i64>,
        (experts, tokens): (usize, usize),
        threads: u32,
    ) -> Option<Self> {
        let rows = (experts * tokens) as i64;
        let mut memory = Memory::new(16)?;
        let input = memory.tensor(sys::GGML_TYPE_F32, [stack.shape.hidden, 1, rows]);
        let ids = memory.tensor(sys::GGML_TYPE_I32, [1, rows, 1]);
        let (output, graph) = graph(&memory, stack, neurons, input, ids);
        memory.allocate()?;
        set(input, &waves((rows * stack.shape.hidden) as usize));
        let ids_values = vec![0; rows as usize];
        let backend = PooledBackend::new(threads)?;
        let stack = Arc::clone(stack);
        Some(Self { stack, tokens, ids_values, graph, ids, output, backend, _memory: memory })
    }

    /// Points the rows at experts `first`, `first + 1`, … of the stack, around its end.
    pub(crate) fn choose(&mut self, first: u32) {
        for (row, id) in self.ids_values.iter_mut().enumerate() {
            let expert = i64::from(first) + (row / self.tokens.max(1)) as i64;
            *id = (expert % self.stack.shape.experts) as i32;
        }
        set(self.ids, &self.ids_values);
    }

    /// Whether ggml computed it.
    #[must_use]
    pub(crate) fn run(&mut self) -> bool {
        // SAFETY: backend, pool and graph are live, and `self` is borrowed mutably.
        let status = unsafe { sys::ggml_backend_graph_compute(self.backend.raw(), self.graph) };
        status == sys::GGML_STATUS_SUCCESS
    }

    /// The rows that came out, `[rows][hidden]`.
    pub(crate) fn output(&self) -> &[f32] {
        // SAFETY: the output is F32 in host memory, contiguous, and nobody computes it now.
        unsafe {
            let count = sys::ggml_nelements(self.output) as usize;
            std::slice::from_raw_parts((*self.output).data.cast(), count)
        }
    }
}

/// `gate | up · SwiGLU · down` over views of the stack: rows of gate and up, columns of down.
fn graph(
    memory: &Memory,
    stack: &Stack,
    neurons: Range<i64>,
    input: *mut sys::ggml_tensor,
    ids: *mut sys::ggml_tensor,
) -> (*mut sys::ggml_tensor, *mut sys::ggml_cgraph) {
    let (first, count) = (neurons.start, neurons.end - neurons.start);
    let context = memory.context();
    let [gate, up, down] = stack.weights;
    // SAFETY: all tensors belong to live contexts; shapes fit by construction, and views
    // lie inside the stack, whose columns are cut between blocks.
    unsafe {
        let entry = |weight: *mut sys::ggml_tensor| {
            let ([_, row, expert, _], [width, _, experts, _]) = ((*weight).nb, (*weight).ne);
            let offset = first as usize * row;
            sys::ggml_view_3d(context, weight, width, count, experts, row, expert, offset)
        };
        let ([_, row, expert, _], [_, rows, experts, _]) = ((*down).nb, (*down).ne);
        let offset = sys::ggml_row_size((*down).type_, first);
        let down = sys::ggml_view_3d(context, down, count, rows, experts, row, expert, offset);
        let gate = sys::ggml_mul_mat_id(context, entry(gate), input, ids);
        let up = sys::ggml_mul_mat_id(context, entry(up), input, ids);
        let between = sys::ggml_swiglu_split(context, gate, up);
        let output = sys::ggml_mul_mat_id(context, down, between, ids);
        let graph = sys::ggml_new_graph(context);
        sys::ggml_build_forward_expand(graph, output);
        (output, graph)
    }
}

/// ggml's CPU backend on a thread pool of its own.
struct PooledBackend {
    backend: NonNull<sys::ggml_backend>,
    pool: NonNull<sys::ggml_threadpool>,
}

type SetThreads = unsafe extern "C" fn(sys::ggml_backend_t, c_int);
type SetPool = unsafe extern "C" fn(sys::ggml_backend_t, *mut sys::ggml_threadpool);
type NewPool = unsafe extern "C" fn(*mut sys::ggml_threadpool_params) -> *mut sys::ggml_threadpool;
type FreePool = unsafe extern "C" fn(*mut sys::ggml_threadpool);

impl PooledBackend {
    fn new(threads: u32) -> Option<Self> {
        // SAFETY: plain constructors; the types are those of the CPU registry's functions; the
        // pool lives as long as the backend.
        unsafe {
            let mut params: sys::ggml_threadpool_params = std::mem::zeroed();
            sys::ggml_threadpool_params_init(&mut params, threads as c_int);
            let pool = NonNull::new(found::<NewPool>(c"ggml_threadpool_new")(&mut params))?;
            let raw = sys::ggml_backend_init_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU, null());
            let backend = NonNull::new(raw)?;
            found::<SetThreads>(c"ggml_backend_set_n_threads")(raw, threads as c_int);
            found::<SetPool>(c"ggml_backend_cpu_set_threadpool")(raw, pool.as_ptr());
            Some(Self { backend, pool })
        }
    }

    fn raw(&self) -> sys::ggml_backend_t {
        self.backend.as_ptr()
    }
}

impl Drop for PooledBackend {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once, the backend before its pool.
        unsafe {
            sys::ggml_backend_free(self.backend.as_ptr());
            found::<FreePool>(c"ggml_threadpool_free")(self.pool.as_ptr());
        }
    }
}

/// A function of the CPU backend's registry, which has it in builds of every kind.
///
/// # Safety
/// `F` must be the type of the function called `name`.
unsafe fn found<F: Copy>(name: &CStr) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: lookups in ggml's registry; the address is checked, its type is the caller's word.
    unsafe {
        let device = sys::ggml_backend_dev_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU);
        let registry = sys::ggml_backend_dev_backend_reg(device);
        let address = sys::ggml_backend_reg_get_proc_address(registry, name.as_ptr());
        assert!(!address.is_null(), "ggml's CPU backend has no {name:?}");
        std::mem::transmute_copy(&address)
    }
}
