//! One stream of Motley's device in a linked ggml: what its scheduler calls. The work is the
//! runner's.

use super::executor::{BlockExecutor, WholeOnCpu};
use super::link::BackendLink;
use super::runner::BlockRunner;
use crate::api;
use crate::api::abi::{Backend, BackendInterface, Device};
use crate::compute::stream::CpuStream;
use crate::compute::unit::CpuUnit;
use crate::layout::nodes::Nodes;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// What `init_backend` picks up: llama.cpp creates the backend inside
/// `llama_init_from_model`, on the calling thread, with no user pointer.
pub(crate) struct Binding {
    pub(crate) executor: Box<dyn BlockExecutor>,
    pub(crate) link: Arc<BackendLink>,
    /// The nodes its model's experts are divided among.
    pub(crate) nodes: Option<Arc<Nodes>>,
}

thread_local! {
    static BINDING: RefCell<Option<Binding>> = const { RefCell::new(None) };
}

/// Runs `create_context` so that the backend it creates is bound to `binding`.
pub(crate) fn with_binding<R>(binding: Binding, create_context: impl FnOnce() -> R) -> R {
    BINDING.with_borrow_mut(|slot| *slot = Some(binding));
    let result = create_context();
    BINDING.with_borrow_mut(|slot| *slot = None);
    result
}

static GUID: [u8; 16] = *b"motley-experts-1";

pub(crate) unsafe extern "C" fn init_backend(
    device: *mut Device,
    _: *const c_char,
) -> *mut Backend {
    let unbound = || Binding { executor: Box::new(WholeOnCpu), link: Arc::default(), nodes: None };
    let bound = BINDING.with_borrow_mut(Option::take);
    let Binding { executor, link, nodes } = bound.unwrap_or_else(unbound);
    let Some(mut stream) = CpuStream::new(Arc::clone(&link.pool)) else {
        return std::ptr::null_mut();
    };
    stream.set_nodes(nodes);
    let cpu = CpuUnit::new(stream);
    let state = Box::into_raw(Box::new(BlockRunner::new(executor, cpu, link)));
    Box::into_raw(Box::new(Backend {
        guid: &GUID,
        iface: BackendInterface::synchronous(get_name, free, graph_compute),
        device,
        context: state.cast(),
    }))
}

/// The registry's `ggml_backend_set_n_threads`: llama.cpp calls it before each graph.
pub(crate) unsafe extern "C" fn set_threads(backend: *mut Backend, threads: c_int) {
    // SAFETY: llama.cpp passes a backend this module created.
    unsafe { (*state(backend)).cpu().stream_mut().set_threads(threads) }
}

/// The registry's `ggml_backend_set_abort_callback`.
pub(crate) unsafe extern "C" fn set_abort(
    backend: *mut Backend,
    callback: api::ggml_abort_callback,
    data: *mut c_void,
) {
    // SAFETY: as `set_threads`; callback and data live as long as the context.
    unsafe { (*state(backend)).cpu().stream_mut().set_abort(callback, data) }
}

unsafe extern "C" fn get_name(_: *mut Backend) -> *const c_char {
    c"MOTLEY".as_ptr()
}

unsafe extern "C" fn free(backend: *mut Backend) {
    // SAFETY: both boxes were made in `init_backend`; ggml frees a backend once.
    unsafe {
        drop(Box::from_raw(state(backend)));
        drop(Box::from_raw(backend));
    }
}

unsafe extern "C" fn graph_compute(
    backend: *mut Backend,
    graph: *mut api::ggml_cgraph,
) -> api::ggml_status {
    // SAFETY: ggml runs one graph at a time per backend, so the state is ours alone, and keeps
    // the graph live and untouched until we return.
    unsafe { (*state(backend)).compute(graph) }
}

unsafe fn state(backend: *mut Backend) -> *mut BlockRunner {
    // SAFETY: every backend with our vtable carries a runner.
    unsafe { (*backend).context.cast() }
}
