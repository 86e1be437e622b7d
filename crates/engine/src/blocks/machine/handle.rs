//! A window on a session's executor from outside: figures, who decides, what ran when.

use super::device::DeviceUnit;
use super::executor::Executor;
use super::figures::MachineFigures;
use motley_sched::SchedulerSetup;
use motley_sched::spans::Spans;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The window; clones look at the same.
#[derive(Clone, Default)]
pub struct MachineHandle(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Of the session started last; it ends with its session.
    executor: Weak<Executor<DeviceUnit>>,
    report: MachineReport,
    setup: Option<SchedulerSetup>,
    spans: Option<Spans>,
}

/// What devices were given and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineReport {
    /// Experts that may stay on them.
    pub cache_slots: u32,
    /// Blocks they could not take, and why the last.
    pub refused: u64,
    pub refused_reason: Option<String>,
    pub figures: MachineFigures,
}

impl MachineHandle {
    /// Figures of the session started last.
    pub fn report(&self) -> MachineReport {
        let state = self.lock();
        let figures = state.executor.upgrade().map(|executor| executor.figures());
        MachineReport { figures: figures.unwrap_or(state.report.figures), ..state.report.clone() }
    }

    /// Who decides in the session started last, once its first block came.
    pub fn setup(&self) -> Option<SchedulerSetup> {
        self.lock().setup.clone()
    }

    /// What ran when since the last call, if it was recorded.
    pub fn take_spans(&self) -> Option<Spans> {
        let mut state = self.lock();
        match state.executor.upgrade() {
            Some(executor) => executor.take_spans(),
            None => state.spans.take(),
        }
    }

    /// A session's executor has started, with `cache_slots` on its devices.
    pub(super) fn started(
        &self,
        executor: &Arc<Executor<DeviceUnit>>,
        setup: SchedulerSetup,
        cache_slots: u32,
    ) {
        let mut state = self.lock();
        state.executor = Arc::downgrade(executor);
        (state.setup, state.report.cache_slots) = (Some(setup), cache_slots);
    }

    /// A session ends: what it did stays.
    pub(super) fn ended(&self, executor: &Arc<Executor<DeviceUnit>>) {
        let mut state = self.lock();
        if state.executor.ptr_eq(&Arc::downgrade(executor)) {
            state.report.figures = executor.figures();
            state.spans = executor.take_spans();
        }
    }

    /// Devices do not take a block; said, not silent.
    pub(super) fn refuse(&self, reason: String) {
        let mut state = self.lock();
        state.report.refused += 1;
        state.report.refused_reason = Some(reason);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
