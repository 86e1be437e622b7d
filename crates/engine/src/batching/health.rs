//! Whether answers come: what the batching thread last did, read by whoever says "ready".
//! Keeps the last failure; mends nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A step that failed counts for so long, unless one succeeds before.
pub const FAILING_FOR: Duration = Duration::from_secs(5);

/// Whether requests are being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Nothing speaks against it.
    Answering,
    /// The last step failed, less than [`FAILING_FOR`] ago; or the model's files are not what
    /// was loaded any more, and every answer will fail.
    Failing { reason: String },
    /// The thread that answers has ended: nothing will be answered any more.
    Dead { reason: String },
}

/// The last failure, shared by the thread and its handles.
#[derive(Debug, Default)]
pub(super) struct HealthRecord(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Well,
    Failed {
        /// By the thread's clock.
        at: Duration,
        reason: String,
        for_good: bool,
    },
    Dead {
        reason: String,
    },
}

impl HealthRecord {
    pub(super) fn at(&self, now: Duration) -> Health {
        match &*self.state() {
            State::Dead { reason } => Health::Dead { reason: reason.clone() },
            State::Failed { at, reason, for_good }
                if *for_good || now.saturating_sub(*at) < FAILING_FOR =>
            {
                Health::Failing { reason: reason.clone() }
            }
            State::Well | State::Failed { .. } => Health::Answering,
        }
    }

    /// A step went through.
    pub(super) fn succeeded(&self) {
        let mut state = self.state();
        if matches!(*state, State::Failed { for_good: false, .. }) {
            *state = State::Well;
        }
    }

    /// A step failed; `for_good` when no later one can succeed.
    pub(super) fn failed(&self, at: Duration, reason: String, for_good: bool) {
        let mut state = self.state();
        if !matches!(*state, State::Dead { .. } | State::Failed { for_good: true, .. }) {
            *state = State::Failed { at, reason, for_good };
        }
    }

    /// The thread has ended.
    pub(super) fn died(&self, reason: String) {
        *self.state() = State::Dead { reason };
    }

    pub(super) fn is_dead(&self) -> bool {
        matches!(*self.state(), State::Dead { .. })
    }

    /// Readable after a panic: every change above is one assignment.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn failing(reason: &str) -> Health {
        Health::Failing { reason: reason.to_owned() }
    }

    #[test]
    fn a_failure_counts_until_a_success_or_for_a_while() {
        let record = HealthRecord::default();
        assert_eq!(record.at(SECOND), Health::Answering);
        record.failed(SECOND, "disk".into(), false);
        assert_eq!(record.at(2 * SECOND), failing("disk"));
        assert_eq!(record.at(SECOND + FAILING_FOR), Health::Answering);
        record.failed(9 * SECOND, "disk".into(), false);
        record.succeeded();
        assert_eq!(record.at(9 * SECOND), Health::Answering);
    }

    #[test]
    fn a_changed_model_counts_for_good_and_death_above_all() {
        let record = HealthRecord::default();
        record.failed(SECOND, "changed".into(), true);
        record.succeeded();
        record.failed(2 * SECOND, "disk".into(), false);
        assert_eq!(record.at(1000 * SECOND), failing("changed"));
        record.died("panic".into());
        record.failed(2 * SECOND, "disk".into(), true);
        assert_eq!(record.at(SECOND), Health::Dead { reason: "panic".into() });
        assert!(record.is_dead());
    }
}
