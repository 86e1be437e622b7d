//! Backends of ggml as owned values: work on one device, in order.

use super::cpu;
use super::outcome::ComputeOutcome;
use super::threadpool::CurrentPool;
use crate::api;
use crate::layout::nodes::Nodes;
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

/// A ggml backend.
pub(crate) struct Stream(NonNull<api::ggml_backend>);

// SAFETY: a backend may be used from any thread, by one at a time; its owner is borrowed mutably.
unsafe impl Send for Stream {}

impl Stream {
    /// Takes a backend that nobody else has; `None` for none.
    pub(crate) fn new(raw: api::ggml_backend_t) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// A stream of ggml's CPU backend.
    pub(crate) fn on_cpu() -> Option<Self> {
        // SAFETY: a plain constructor; no parameters.
        Self::new(unsafe {
            api::ggml_backend_init_by_type(api::GGML_BACKEND_DEVICE_TYPE_CPU, null())
        })
    }

    pub(crate) fn raw(&self) -> api::ggml_backend_t {
        self.0.as_ptr()
    }

    /// Waits for everything under way.
    pub(crate) fn synchronise(&self) {
        // SAFETY: the backend is live.
        unsafe { api::ggml_backend_synchronize(self.raw()) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: taken in `new`, freed once.
        unsafe { api::ggml_backend_free(self.raw()) }
    }
}

/// The CPU backend on a pool that is another's, and may be exchanged between graphs.
pub(crate) struct CpuStream {
    stream: Stream,
    pool: Arc<CurrentPool>,
    threads: c_int,
    abort: Abort,
    nodes: Option<Arc<Nodes>>,
}

/// Whoever may stop a computation.
#[derive(Clone, Copy)]
pub(crate) struct Abort {
    callback: api::ggml_abort_callback,
    data: *mut c_void,
}

// SAFETY: the callback reads a flag that outlives the context, from any thread.
unsafe impl Send for Abort {}
// SAFETY: as above.
unsafe impl Sync for Abort {}

impl Abort {
    /// Whether the computation under way is to be stopped.
    pub(crate) fn is_wanted(&self) -> bool {
        // SAFETY: by whoever set it ([`CpuStream::set_abort`]).
        self.callback.is_some_and(|callback| unsafe { callback(self.data) })
    }
}

impl CpuStream {
    /// `None` when ggml gives no CPU backend.
    pub(crate) fn new(pool: Arc<CurrentPool>) -> Option<Self> {
        let abort = Abort { callback: None, data: null_mut() };
        Some(Self { stream: Stream::on_cpu()?, pool, threads: 1, abort, nodes: None })
    }

    /// Computes a graph.
    ///
    /// # Safety
    /// The graph's tensors and all they point at must be live.
    pub(crate) unsafe fn compute(&mut self, graph: *mut api::ggml_cgraph) -> ComputeOutcome {
        // SAFETY: the backend is ours; the pool pointer is null or kept alive by
        // the context that runs this decode; the caller vouches for the graph.
        let status = unsafe {
            (cpu::procs().set_threadpool)(self.stream.raw(), self.pool.raw());
            api::ggml_backend_graph_compute(self.stream.raw(), graph)
        };
        ComputeOutcome::of(status)
    }

    /// Takes up the current pool now, while the one before is still live.
    pub(crate) fn adopt_pool(&mut self) {
        // SAFETY: the backend is ours; both pools are live.
        unsafe { (cpu::procs().set_threadpool)(self.stream.raw(), self.pool.raw()) }
    }

    /// Threads of a graph, this one included.
    pub(crate) fn threads(&self) -> usize {
        self.threads.max(1) as usize
    }

    /// The nodes that experts in memory are divided among, if they are.
    pub(crate) fn nodes(&self) -> Option<Arc<Nodes>> {
        self.nodes.clone()
    }

    pub(crate) fn set_nodes(&mut self, nodes: Option<Arc<Nodes>>) {
        self.nodes = nodes;
    }

    /// Who may stop a graph.
    pub(crate) fn abort(&self) -> Abort {
        self.abort
    }

    pub(crate) fn set_threads(&mut self, threads: c_int) {
        self.threads = threads;
        // SAFETY: the backend is the CPU's.
        unsafe { (cpu::procs().set_threads)(self.stream.raw(), threads) }
    }

    /// `callback` is asked while a graph is computed; true stops it.
    ///
    /// # Safety
    /// `callback` must be callable with `data` whenever this stream computes.
    pub(crate) unsafe fn set_abort(
        &mut self,
        callback: api::ggml_abort_callback,
        data: *mut c_void,
    ) {
        self.abort = Abort { callback, data };
        // SAFETY: the backend is the CPU's; the rest by the caller.
        unsafe { (cpu::procs().set_abort)(self.stream.raw(), callback, data) }
    }
}
