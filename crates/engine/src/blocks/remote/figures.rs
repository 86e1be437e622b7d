//! What workers have done for all sessions of a head, for others to read.

use motley_trace::WorkerRecord;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Figures of all workers, in their order.
pub(crate) type SharedWorkers = Arc<Mutex<Vec<WorkerRecord>>>;

/// Nothing done yet, by workers of these names.
pub(crate) fn figures<'a>(names: impl Iterator<Item = &'a str>) -> SharedWorkers {
    let one = |name: &str| WorkerRecord {
        name: name.to_owned(),
        answers: true,
        ..WorkerRecord::default()
    };
    Arc::new(Mutex::new(names.map(one).collect()))
}

/// A panic elsewhere leaves whole figures.
pub(crate) fn lock(figures: &SharedWorkers) -> MutexGuard<'_, Vec<WorkerRecord>> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}
