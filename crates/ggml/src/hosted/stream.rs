//! Blocks as the host's scheduler sends them: one stream per context, computed by the guest's
//! executor on the threads the host computes with.

use super::cpu_registry;
use super::guest::GUEST;
use super::sizes::{installed, words};
use crate::api;
use crate::compute::stream::CpuStream;
use crate::compute::threadpool::{Threadpool, ThreadpoolOptions};
use crate::compute::unit::CpuUnit;
use crate::seam::link::BackendLink;
use crate::seam::runner::BlockRunner;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

static GUID: [u8; 16] = *b"motley-drop-in-1";

/// What stands behind one of our backends.
struct State {
    runner: BlockRunner,
    link: Arc<BackendLink>,
    /// Pools of ours for a host that has none. The last one is in use; both backends of a context
    /// may still name an earlier one, so all live as long as the context.
    pools: Vec<Threadpool>,
}

pub(super) unsafe extern "C" fn init_backend(device: *mut c_void, _: *const c_char) -> *mut c_void {
    let link = Arc::<BackendLink>::default();
    let Some((guest, stream)) = GUEST.get().zip(CpuStream::new(Arc::clone(&link.pool))) else {
        return null_mut();
    };
    let runner = BlockRunner::new(guest.executor(), CpuUnit::new(stream), Arc::clone(&link));
    let state = Box::into_raw(Box::new(State { runner, link, pools: Vec::new() }));
    let sizes = installed();
    let backend = words(1 + sizes.backend + 2);
    // SAFETY: the id, the functions, the device, the context. ggml passes the device that holds
    // weights, whose context is the one that runs blocks.
    unsafe {
        let runs = device.cast::<*mut c_void>().add(sizes.device + 1).read();
        backend.write(GUID.as_ptr().cast_mut().cast());
        backend.add(1).write(name as *mut c_void);
        backend.add(2).write(free as *mut c_void);
        backend.add(1 + sizes.graph_compute()).write(graph_compute as *mut c_void);
        backend.add(1 + sizes.backend).write(runs);
        backend.add(1 + sizes.backend + 1).write(state.cast());
    }
    backend.cast()
}

unsafe extern "C" fn name(_: *mut c_void) -> *const c_char {
    c"MOTLEY".as_ptr()
}

unsafe extern "C" fn free(backend: *mut c_void) {
    let length = 1 + installed().backend + 2;
    // SAFETY: both boxes were made in `init_backend`; ggml frees a backend once.
    unsafe {
        drop(Box::from_raw(state(backend)));
        let words = std::ptr::slice_from_raw_parts_mut(backend.cast::<*mut c_void>(), length);
        drop(Box::from_raw(words));
    }
}

unsafe extern "C" fn graph_compute(
    backend: *mut c_void,
    graph: *mut api::ggml_cgraph,
) -> api::ggml_status {
    // SAFETY: ggml runs one graph at a time per backend, so the state is ours alone, and keeps the
    // graph live and untouched until we return.
    unsafe {
        let state = &mut *state(backend);
        let status = state.runner.compute(graph);
        if let Some((guest, error)) = GUEST.get().zip(state.link.take_error()) {
            guest.failed(&error);
        }
        status
    }
}

/// The registry's `ggml_backend_set_n_threads`: llama.cpp calls it before each graph, after it has
/// told the CPU's backend which pool to use, and before it tells that backend the same number.
pub(super) unsafe extern "C" fn set_threads(backend: *mut c_void, threads: c_int) {
    // SAFETY: llama.cpp passes a backend this module created.
    let state = unsafe { &mut *state(backend) };
    let host_pool = cpu_registry::host_pool();
    let pool = if host_pool.is_null() { state.own_pool(threads) } else { host_pool };
    state.link.pool.set_raw(pool);
    cpu_registry::share_pool(pool);
    state.runner.cpu().stream_mut().set_threads(threads);
}

/// The registry's `ggml_backend_set_abort_callback`.
pub(super) unsafe extern "C" fn set_abort(
    backend: *mut c_void,
    callback: api::ggml_abort_callback,
    data: *mut c_void,
) {
    // SAFETY: as `set_threads`; callback and data live as long as the context.
    unsafe { (*state(backend)).runner.cpu().stream_mut().set_abort(callback, data) }
}

impl State {
    /// A pool of at least so many threads; null when the system refuses them, and ggml then starts
    /// threads for every graph.
    fn own_pool(&mut self, threads: c_int) -> *mut api::ggml_threadpool {
        let threads = threads.max(1) as u32;
        if self.pools.last().is_none_or(|pool| pool.threads() < threads) {
            self.pools.extend(Threadpool::new(&ThreadpoolOptions::with_threads(threads)));
        }
        self.pools.last().map_or(null_mut(), Threadpool::raw)
    }
}

unsafe fn state(backend: *mut c_void) -> *mut State {
    // SAFETY: every backend with our functions carries a state behind its device.
    unsafe { backend.cast::<*mut c_void>().add(1 + installed().backend + 1).read().cast() }
}
