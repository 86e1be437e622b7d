//! One stream of Motley's device: receives a split from ggml's scheduler, makes a
//! block of it and hands it to the context's executor. Decides nothing.

use crate::abi::{Backend, BackendInterface, Device};
use crate::block::{ExpertBlock, NotABlock};
use crate::cpu;
use crate::project::Projection;
use crate::reserve;
use crate::subset::Subset;
use llama_cpp_sys_2 as sys;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Runs the routed-expert blocks of one context.
pub trait BlockExecutor: Send {
    /// Runs `block`: when it returns `Ok(Done)`, every output row has been written.
    /// An error ends the current `decode` with [`crate::DecodeError::Executor`];
    /// the context stays usable.
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError>;
}

/// Why an executor could not run a block, in words for the user.
#[derive(Debug, Clone, thiserror::Error)]
#[error("layer {layer}: {reason}")]
pub struct BlockError {
    /// Layer whose experts were wanted.
    pub layer: u32,
    /// What went wrong.
    pub reason: String,
}

/// What ggml's CPU backend did with a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeOutcome {
    /// All nodes were computed.
    Done,
    /// The abort callback stopped it.
    Aborted,
    /// ggml reported failure (out of memory for its work buffer, mostly).
    Failed,
}

/// ggml's CPU backend on the context's shared thread pool.
pub struct CpuUnit {
    raw: sys::ggml_backend_t,
    link: Arc<BackendLink>,
    pub(crate) subset: Subset,
    pub(crate) projection: Projection,
}

impl CpuUnit {
    /// Computes every operation of `block` as llama.cpp built it.
    pub fn compute(&mut self, block: &mut ExpertBlock<'_>) -> ComputeOutcome {
        // SAFETY: the graph of a block is live for the block's life.
        outcome(unsafe { self.compute_graph(block.graph()) })
    }

    /// Computes a graph of clones.
    ///
    /// # Safety
    /// The graph's tensors and all they point at must be live.
    pub(crate) unsafe fn compute_clones(&mut self, graph: *mut sys::ggml_cgraph) -> ComputeOutcome {
        // SAFETY: by the caller.
        outcome(unsafe { self.compute_graph(graph) })
    }

    unsafe fn compute_graph(&mut self, graph: *mut sys::ggml_cgraph) -> sys::ggml_status {
        // SAFETY: the backend is ours; the pool pointer is null or kept alive by
        // the context that runs this decode; the caller vouches for the graph.
        unsafe {
            (cpu::procs().set_threadpool)(self.raw, self.link.pool.load(Relaxed));
            sys::ggml_backend_graph_compute(self.raw, graph)
        }
    }
}

impl Drop for CpuUnit {
    fn drop(&mut self) {
        // SAFETY: created in `create`, freed once.
        unsafe { sys::ggml_backend_free(self.raw) }
    }
}

/// How often the seam was used; shared between a context and its backend.
#[derive(Debug, Default)]
pub struct BackendLink {
    pub(crate) pool: AtomicPtr<sys::ggml_threadpool>,
    blocks: AtomicU64,
    rows: AtomicU64,
    delegated: AtomicU64,
    delegated_reason: Mutex<Option<NotABlock>>,
    error: Mutex<Option<BlockError>>,
}

/// Counts of what went through the seam.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeamCounts {
    /// Blocks given to the executor.
    pub blocks: u64,
    /// (token, slot) rows in them.
    pub rows: u64,
    /// Splits that were not a known block and ran whole on the CPU backend.
    pub delegated: u64,
    /// Why the last of those was not a block.
    pub delegated_reason: Option<NotABlock>,
}

impl BackendLink {
    pub(crate) fn counts(&self) -> SeamCounts {
        SeamCounts {
            blocks: self.blocks.load(Relaxed),
            rows: self.rows.load(Relaxed),
            delegated: self.delegated.load(Relaxed),
            delegated_reason: *self.delegated_reason.lock().expect("no panic holds this lock"),
        }
    }

    pub(crate) fn take_error(&self) -> Option<BlockError> {
        self.error.lock().expect("no panic holds this lock").take()
    }

    fn set_error(&self, error: BlockError) {
        *self.error.lock().expect("no panic holds this lock") = Some(error);
    }
}

/// What `init_backend` picks up: llama.cpp creates the backend inside
/// `llama_init_from_model`, on the calling thread, with no user pointer.
pub(crate) struct Binding {
    pub(crate) executor: Box<dyn BlockExecutor>,
    pub(crate) link: Arc<BackendLink>,
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
}

static GUID: [u8; 16] = *b"motley-experts-1";

pub(crate) unsafe extern "C" fn init_backend(
    device: *mut Device,
    _: *const c_char,
) -> *mut Backend {
    // SAFETY: a plain constructor of ggml's CPU backend.
    let raw = unsafe {
        sys::ggml_backend_init_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU, std::ptr::null())
    };
    if raw.is_null() {
        return std::ptr::null_mut();
    }
    let Binding { executor, link } = BINDING
        .with_borrow_mut(Option::take)
        .unwrap_or_else(|| Binding { executor: Box::new(WholeOnCpu), link: Arc::default() });
    let cpu = CpuUnit {
        raw,
        link: Arc::clone(&link),
        subset: Subset::default(),
        projection: Projection::default(),
    };
    let state = Box::into_raw(Box::new(State { executor, cpu, link }));
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
    unsafe { (cpu::procs().set_threads)((*state(backend)).cpu.raw, threads) }
}

/// The registry's `ggml_backend_set_abort_callback`.
pub(crate) unsafe extern "C" fn set_abort(
    backend: *mut Backend,
    callback: sys::ggml_abort_callback,
    data: *mut c_void,
) {
    // SAFETY: as `set_threads`; callback and data live as long as the context.
    unsafe { (cpu::procs().set_abort)((*state(backend)).cpu.raw, callback, data) }
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
    graph: *mut sys::ggml_cgraph,
) -> sys::ggml_status {
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
    catch_unwind(run).unwrap_or(sys::GGML_STATUS_FAILED)
}

fn run_block(state: &mut State, block: &mut ExpertBlock<'_>) -> sys::ggml_status {
    state.link.blocks.fetch_add(1, Relaxed);
    state.link.rows.fetch_add(block.output_rows() as u64, Relaxed);
    match state.executor.execute(block, &mut state.cpu) {
        Ok(ComputeOutcome::Done) => sys::GGML_STATUS_SUCCESS,
        Ok(ComputeOutcome::Aborted) => sys::GGML_STATUS_ABORTED,
        Ok(ComputeOutcome::Failed) => sys::GGML_STATUS_FAILED,
        Err(error) => {
            state.link.set_error(error);
            sys::GGML_STATUS_FAILED
        }
    }
}

unsafe fn delegate(
    state: &mut State,
    graph: *mut sys::ggml_cgraph,
    reason: NotABlock,
) -> sys::ggml_status {
    state.link.delegated.fetch_add(1, Relaxed);
    *state.link.delegated_reason.lock().expect("no panic holds this lock") = Some(reason);
    // SAFETY: the caller's graph is live.
    unsafe {
        if reads_reserved_weights(graph) {
            let reason = format!("unknown expert block ({reason}); load with --loading mapped");
            state.link.set_error(BlockError { layer: 0, reason });
            return sys::GGML_STATUS_FAILED;
        }
        state.cpu.compute_graph(graph)
    }
}

/// A split that is no block has no executor to fill reserved weights for it.
unsafe fn reads_reserved_weights(graph: *mut sys::ggml_cgraph) -> bool {
    // SAFETY: the caller's graph is live, and so are its nodes and their sources.
    unsafe {
        (0..sys::ggml_graph_n_nodes(graph)).any(|index| {
            let node = sys::ggml_graph_node(graph, index);
            let weight = (*node).src[0];
            !weight.is_null() && reserve::owns((*weight).buffer)
        })
    }
}

unsafe fn state(backend: *mut Backend) -> *mut State {
    // SAFETY: every backend with our vtable carries a `State`.
    unsafe { (*backend).context.cast() }
}

pub(crate) fn outcome(status: sys::ggml_status) -> ComputeOutcome {
    match status {
        sys::GGML_STATUS_SUCCESS => ComputeOutcome::Done,
        sys::GGML_STATUS_ABORTED => ComputeOutcome::Aborted,
        _ => ComputeOutcome::Failed,
    }
}

/// Executor of a context nobody bound: a plain CPU run.
struct WholeOnCpu;

impl BlockExecutor for WholeOnCpu {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        Ok(cpu.compute(block))
    }
}
