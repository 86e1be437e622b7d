//! One stream of Motley's device: receives a split from ggml's scheduler, makes a
//! block of it and hands it to the context's executor. Decides nothing.

use super::block::{ExpertBlock, NotABlock};
use super::executor::{BlockError, BlockExecutor, WholeOnCpu};
use super::link::BackendLink;
use super::reserve;
use crate::api;
use crate::api::abi::{Backend, BackendInterface, Device};
use crate::compute::stream::CpuStream;
use crate::compute::unit::CpuUnit;
use crate::layout::nodes::Nodes;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
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

struct State {
    executor: Box<dyn BlockExecutor>,
    cpu: CpuUnit,
    link: Arc<BackendLink>,
    /// Inputs of the block under way, where its output would be written over them.
    kept: [Vec<u8>; 2],
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
    let state = Box::into_raw(Box::new(State { executor, cpu, link, kept: Default::default() }));
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
    unsafe { (*state(backend)).cpu.stream_mut().set_threads(threads) }
}

/// The registry's `ggml_backend_set_abort_callback`.
pub(crate) unsafe extern "C" fn set_abort(
    backend: *mut Backend,
    callback: api::ggml_abort_callback,
    data: *mut c_void,
) {
    // SAFETY: as `set_threads`; callback and data live as long as the context.
    unsafe { (*state(backend)).cpu.stream_mut().set_abort(callback, data) }
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
    // SAFETY: ggml runs one graph at a time per backend, so the state is ours alone.
    let state = unsafe { &mut *state(backend) };
    let run = AssertUnwindSafe(|| {
        // SAFETY: ggml keeps the graph live and untouched until we return.
        match unsafe { ExpertBlock::parse(graph) } {
            Ok(mut block) => run_block(state, &mut block),
            // SAFETY: as above.
            Err(reason) => unsafe { delegate(state, graph, reason) },
        }
    });
    catch_unwind(run).unwrap_or(api::GGML_STATUS_FAILED)
}

fn run_block(state: &mut State, block: &mut ExpertBlock<'_>) -> api::ggml_status {
    block.secure_inputs(&mut state.kept);
    state.link.count_block(block.output_rows() as u64);
    let outcome = state.executor.execute(block, &mut state.cpu);
    let unread = state.cpu.take_unread();
    match outcome {
        Ok(_) if unread => {
            let reason = "its experts were left on disk and nobody read them".into();
            state.link.set_error(BlockError { layer: block.layer(), reason });
            api::GGML_STATUS_FAILED
        }
        Ok(outcome) => outcome.status(),
        Err(error) => {
            state.link.set_error(error);
            api::GGML_STATUS_FAILED
        }
    }
}

unsafe fn delegate(
    state: &mut State,
    graph: *mut api::ggml_cgraph,
    reason: NotABlock,
) -> api::ggml_status {
    state.link.count_delegated(reason);
    // SAFETY: the caller's graph is live.
    unsafe {
        if reads_reserved_weights(graph) {
            let reason = format!("unknown expert block ({reason}); load with --loading mapped");
            state.link.set_error(BlockError { layer: 0, reason });
            return api::GGML_STATUS_FAILED;
        }
        state.cpu.compute_graph(graph).status()
    }
}

/// A split that is no block has no executor to fill reserved weights for it.
unsafe fn reads_reserved_weights(graph: *mut api::ggml_cgraph) -> bool {
    // SAFETY: the caller's graph is live, and so are its nodes and their sources.
    unsafe {
        (0..api::ggml_graph_n_nodes(graph)).any(|index| {
            let node = api::ggml_graph_node(graph, index);
            let weight = (*node).src[0];
            !weight.is_null() && reserve::owns((*weight).buffer)
        })
    }
}

unsafe fn state(backend: *mut Backend) -> *mut State {
    // SAFETY: every backend with our vtable carries a `State`.
    unsafe { (*backend).context.cast() }
}
