//! What the host asks of its CPU registry, answered on the way. llama.cpp looks functions of the
//! CPU up by name, through one entry of the registry's table; ours stands before it and passes
//! everything on but three names:
//! * whether memory has several nodes, which its loader asks before it maps a file: with several
//!   it does not read the whole file into memory first, and asks the system not to read ahead.
//!   Yes, while experts are ours;
//! * which pool, and how many threads, the CPU computes with: ours computes with the same, and a
//!   host without a pool gets the one we compute with. Two would spin against each other.

use super::maps;
use crate::api;
use crate::compute::cpu;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Where a registry's table has `get_proc_address`: after the version and three functions.
const PROC_ADDRESS: usize = 4;

type ProcAddress = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type IsNuma = unsafe extern "C" fn() -> bool;

/// What was there before.
struct Before {
    proc_address: ProcAddress,
    is_numa: Option<IsNuma>,
}

static BEFORE: OnceLock<Before> = OnceLock::new();
/// Whether a loader is about to map a model whose experts we take.
static OURS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The pool the host computes its next graph with, on this thread; null for none.
    static HOST_POOL: Cell<*mut api::ggml_threadpool> = const { Cell::new(null_mut()) };
    /// The one our backend computes with, until the CPU's backend has heard of it.
    static SHARED_POOL: Cell<*mut api::ggml_threadpool> = const { Cell::new(null_mut()) };
}

/// Whether the entry can be replaced: its table lies in memory that may be written.
pub(super) fn can_answer() -> bool {
    let entry = entry().addr();
    maps::read().iter().any(|mapping| mapping.holds(entry, size_of::<usize>()) && mapping.writable)
}

/// Puts ours before the registry's; later calls do nothing. Without it, everything still works:
/// files are read whole at load, and threads are our own.
pub(super) fn answer() {
    if !can_answer() {
        return;
    }
    BEFORE.get_or_init(|| {
        // SAFETY: the entry of a live registry, in writable memory; backends are loaded by one
        // thread. What was there is a function of this kind, since the CPU's has one.
        unsafe {
            let proc_address: ProcAddress = std::mem::transmute(entry().read());
            let is_numa =
                proc_address(cpu::registry().cast(), c"ggml_backend_cpu_is_numa".as_ptr());
            let is_numa =
                (!is_numa.is_null()).then(|| std::mem::transmute::<*mut c_void, IsNuma>(is_numa));
            // The functions we use ourselves are those behind ours.
            cpu::procs();
            entry().write(ours as *mut c_void);
            Before { proc_address, is_numa }
        }
    });
}

/// Whether the experts of the model being loaded are ours.
pub(super) fn experts_are_ours(ours: bool) {
    OURS.store(ours, Relaxed);
}

/// The pool the host computes with on this thread; null for none.
pub(super) fn host_pool() -> *mut api::ggml_threadpool {
    HOST_POOL.get()
}

/// The CPU's backend of the context that is about to compute on this thread gets `pool` as well.
pub(super) fn share_pool(pool: *mut api::ggml_threadpool) {
    SHARED_POOL.set(pool);
}

fn entry() -> *mut *mut c_void {
    cpu::registry().cast::<*mut c_void>().wrapping_add(PROC_ADDRESS)
}

unsafe extern "C" fn ours(registry: *mut c_void, name: *const c_char) -> *mut c_void {
    let Some(before) = BEFORE.get() else { return null_mut() };
    // SAFETY: ggml passes its registry and a NUL-terminated name.
    unsafe {
        match CStr::from_ptr(name).to_bytes() {
            b"ggml_backend_cpu_is_numa" if before.is_numa.is_some() => is_numa as *mut c_void,
            b"ggml_backend_cpu_set_threadpool" => set_threadpool as *mut c_void,
            b"ggml_backend_set_n_threads" => set_threads as *mut c_void,
            _ => (before.proc_address)(registry, name),
        }
    }
}

unsafe extern "C" fn is_numa() -> bool {
    let before = BEFORE.get().and_then(|before| before.is_numa);
    // SAFETY: a function of the CPU's without arguments.
    OURS.load(Relaxed) || before.is_some_and(|is_numa| unsafe { is_numa() })
}

unsafe extern "C" fn set_threadpool(backend: api::ggml_backend_t, pool: *mut api::ggml_threadpool) {
    HOST_POOL.set(pool);
    // None stays what it was until the number of threads comes, with a pool of ours.
    if !pool.is_null() {
        // SAFETY: llama.cpp passes a backend of the CPU's and a live pool.
        unsafe { (cpu::procs().set_threadpool)(backend, pool) }
    }
}

unsafe extern "C" fn set_threads(backend: api::ggml_backend_t, threads: c_int) {
    let shared = SHARED_POOL.replace(null_mut());
    // SAFETY: llama.cpp passes a backend of the CPU's; the pool lives as long as the context.
    unsafe {
        if HOST_POOL.get().is_null() {
            (cpu::procs().set_threadpool)(backend, shared);
        }
        (cpu::procs().set_threads)(backend, threads);
    }
}
