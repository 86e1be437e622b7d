//! What workers have done for all sessions of a head, for others to read.

use motley_sched::remote::ExpertSet;
use motley_trace::WorkerRecord;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Figures of all workers, in their order.
pub(crate) type SharedWorkers = Arc<Mutex<Vec<WorkerRecord>>>;

/// Nothing done yet by workers of these names, which keep these experts.
pub(super) fn figures<'a>(workers: impl Iterator<Item = (&'a str, ExpertSet)>) -> SharedWorkers {
    let one = |(name, keeps): (&str, ExpertSet)| WorkerRecord {
        name: name.to_owned(),
        answers: true,
        keeps: kept(&keeps),
        ..WorkerRecord::default()
    };
    Arc::new(Mutex::new(workers.map(one).collect()))
}

fn kept(experts: &ExpertSet) -> Vec<(u16, u16, u16)> {
    experts.runs().into_iter().map(|(layer, run)| (layer, run.start, run.end)).collect()
}

/// A panic elsewhere leaves whole figures.
pub(crate) fn lock(figures: &SharedWorkers) -> MutexGuard<'_, Vec<WorkerRecord>> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}
