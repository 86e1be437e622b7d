//! A ggml thread pool shared by llama.cpp's CPU backend and Motley's own CPU work:
//! two pools would spin against each other. It computes one graph at a time: whoever computes
//! occupies it.

use super::{cpu, thread_probe};
use crate::api;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// ggml's own limit (`GGML_MAX_N_THREADS`).
const MAX_THREADS: u32 = 512;

/// What a pool is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadpoolOptions {
    /// Worker threads, the caller's included; at least 1.
    pub threads: u32,
    /// CPUs to run on; empty leaves the choice to the system.
    pub cpus: Vec<usize>,
    /// How eagerly idle workers poll for work, 0 (sleep at once) to 100.
    pub poll: u32,
}

impl ThreadpoolOptions {
    /// `threads` workers anywhere, with ggml's own polling level.
    pub fn with_threads(threads: u32) -> Self {
        Self { threads, cpus: Vec::new(), poll: 50 }
    }
}

/// A live pool; its threads end when it is dropped.
#[derive(Debug)]
pub struct Threadpool {
    raw: NonNull<api::ggml_threadpool>,
    threads: u32,
    cpus: Vec<usize>,
    /// Held while a graph is computed, or the pool is paused.
    busy: Mutex<()>,
}

// SAFETY: ggml_threadpool synchronises its own state; the handle is an address.
unsafe impl Send for Threadpool {}
// SAFETY: as above; ggml runs one graph at a time on a pool, and everybody who computes on it
// occupies it first ([`occupy`]).
unsafe impl Sync for Threadpool {}

impl Threadpool {
    /// Starts the workers. `None` when the system refuses the threads.
    pub fn new(options: &ThreadpoolOptions) -> Option<Self> {
        if !thread_probe::can_start(options.threads.clamp(1, MAX_THREADS) - 1) {
            return None;
        }
        // SAFETY: all-zero is a valid parameter struct, filled by `params_init`; the
        // mask has one entry per possible thread and larger indices are left out.
        let (raw, threads) = unsafe {
            let mut params: api::ggml_threadpool_params = std::mem::zeroed();
            let threads = options.threads.clamp(1, MAX_THREADS);
            api::ggml_threadpool_params_init(&mut params, threads as i32);
            params.poll = options.poll.min(100);
            for &cpu in &options.cpus {
                if let Some(bit) = params.cpumask.get_mut(cpu) {
                    *bit = true;
                }
            }
            ((cpu::procs().pool_new)(&mut params), threads)
        };
        let (raw, cpus) = (NonNull::new(raw)?, options.cpus.clone());
        Some(Self { raw, threads, cpus, busy: Mutex::new(()) })
    }

    /// Worker threads, the caller's included.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// CPUs its threads run on; empty when the system chooses.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    pub(crate) fn raw(&self) -> *mut api::ggml_threadpool {
        self.raw.as_ptr()
    }
}

impl Drop for Threadpool {
    fn drop(&mut self) {
        // SAFETY: the pool is ours, and contexts that use it hold it alive (`Context`).
        unsafe { (cpu::procs().pool_free)(self.raw.as_ptr()) }
    }
}

/// Waits until nobody computes on any of `pools`, and keeps others off them until dropped. A
/// backend that changes pools pauses the one before, so that one has to be held as well: ggml
/// would wait forever for workers that are told to pause when a graph has just been given to them.
pub(crate) fn occupy<'p>(pools: impl IntoIterator<Item = &'p Arc<Threadpool>>) -> Occupied<'p> {
    let mut pools: Vec<&Threadpool> = pools.into_iter().map(|pool| &**pool).collect();
    // One order for everybody: no two can wait for each other.
    pools.sort_by_key(|pool| std::ptr::from_ref(*pool));
    pools.dedup_by(|a, b| std::ptr::eq(*a, *b));
    let lock = |pool: &'p Threadpool| pool.busy.lock().unwrap_or_else(PoisonError::into_inner);
    Occupied { _pools: pools.into_iter().map(lock).collect() }
}

/// Pools that nobody else computes on.
pub(crate) struct Occupied<'p> {
    _pools: Vec<MutexGuard<'p, ()>>,
}

/// The pool that the next graph is computed on; none at first. Its writer keeps the pool alive
/// while anybody computes.
#[derive(Debug, Default)]
pub(crate) struct CurrentPool(AtomicPtr<api::ggml_threadpool>);

impl CurrentPool {
    pub(crate) fn set(&self, pool: &Threadpool) {
        self.0.store(pool.raw(), Relaxed);
    }

    /// One that is not ours; whoever has it keeps it alive while anybody computes.
    pub(crate) fn set_raw(&self, pool: *mut api::ggml_threadpool) {
        self.0.store(pool, Relaxed);
    }

    /// Null when none was set: ggml then starts threads of its own.
    pub(super) fn raw(&self) -> *mut api::ggml_threadpool {
        self.0.load(Relaxed)
    }
}
