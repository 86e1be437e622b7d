//! Pools made from sets of threads. Chooses nothing.

use super::cores::parallelism;
use motley_ggml::{Pools, Threadpool, ThreadpoolOptions};
use motley_plan::cores::{ThreadSet, ThreadSets};
use std::sync::Arc;

/// The threads of a loaded model, for another one that computes in turn with it.
#[derive(Debug, Clone)]
pub struct SharedThreads(pub(crate) Pools);

/// A pool for a set of threads. `None` when the system refuses them.
pub(crate) fn pool(set: &ThreadSet) -> Option<Arc<Threadpool>> {
    let plain = ThreadpoolOptions::with_threads(set.threads);
    Threadpool::new(&ThreadpoolOptions { cpus: set.cpus.clone(), ..plain }).map(Arc::new)
}

/// The pools of both phases; equal sets share one, because two would spin against each other.
/// `None` when the system refuses the threads.
pub(crate) fn pools(sets: &ThreadSets) -> Option<Pools> {
    let prefill = pool(&sets.prefill)?;
    let same = sets.prefill == sets.decode;
    let decode = if same { Arc::clone(&prefill) } else { pool(&sets.decode)? };
    Some(Pools { decode, prefill })
}

/// As many threads as the system lets this process run at once.
pub(crate) fn every_core() -> ThreadSets {
    ThreadSets::both(ThreadSet::anywhere(parallelism()))
}
