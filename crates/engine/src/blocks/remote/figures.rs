//! What workers have done for all sessions of a head, for others to read.

use super::RemoteWorker;
use motley_trace::WorkerRecord;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Figures of all workers, in their order.
pub(crate) type SharedWorkers = Arc<Mutex<Vec<WorkerRecord>>>;

/// Nothing done yet.
pub(crate) fn figures(workers: &[RemoteWorker]) -> SharedWorkers {
    let one = |worker: &RemoteWorker| WorkerRecord {
        name: worker.name.clone(),
        answers: true,
        ..WorkerRecord::default()
    };
    Arc::new(Mutex::new(workers.iter().map(one).collect()))
}

/// A panic elsewhere leaves whole figures.
pub(crate) fn lock(figures: &SharedWorkers) -> MutexGuard<'_, Vec<WorkerRecord>> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}
