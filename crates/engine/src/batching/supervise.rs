//! The worker under supervision: a panic ends it, and everybody hears of that. One turn at a
//! time, so that a thread and a simulation call the same code.

use super::compute::Compute;
use super::shared::{Incoming, Shared};
use super::stream::Event;
use super::worker::Worker;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// A worker and its queue of requests.
pub struct Supervised<C: Compute> {
    /// `None` after a panic.
    worker: Option<Worker<C>>,
    requests: mpsc::Receiver<Incoming>,
    shared: Arc<Shared>,
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// A step was made; there may be more to do.
    Worked,
    /// There is nothing to do until a request comes.
    Idle,
    /// There will be nothing to do any more.
    Ended,
}

impl<C: Compute> Supervised<C> {
    pub(super) fn new(
        worker: Worker<C>,
        requests: mpsc::Receiver<Incoming>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { worker: Some(worker), requests, shared }
    }

    /// Takes the requests that wait and makes one step. Never blocks on a request.
    pub fn turn(&mut self) -> Turn {
        self.guarded(None)
    }

    /// Turns until no more requests can come and all are answered, or a panic ended it.
    pub(super) fn run(mut self) {
        let mut next = None;
        loop {
            match self.guarded(next.take()) {
                Turn::Worked => {}
                Turn::Ended => return,
                Turn::Idle => match self.requests.blocking_recv() {
                    Some(incoming) => next = Some(incoming),
                    None => return,
                },
            }
        }
    }

    fn guarded(&mut self, first: Option<Incoming>) -> Turn {
        let Some(worker) = &mut self.worker else { return Turn::Ended };
        let requests = &mut self.requests;
        // What a panic left half done is only told about below, never computed with.
        let turned = catch_unwind(AssertUnwindSafe(|| turn(worker, first, requests)));
        turned.unwrap_or_else(|panic| {
            self.bury(words(&*panic));
            Turn::Ended
        })
    }

    /// Everyone who waits gets an error, and nobody is let in any more.
    fn bury(&mut self, panic: String) {
        let reason = format!("the engine's thread ended: {panic}");
        tracing::error!("{reason}");
        self.shared.health.died(reason.clone());
        self.requests.close();
        if let Some(mut worker) = self.worker.take() {
            worker.give_up(&reason);
        }
        // Closed: this waits for nobody but a sender that has already been let in.
        while let Some(incoming) = self.requests.blocking_recv() {
            self.shared.waiting.fetch_sub(1, Relaxed);
            let _ = incoming.events.try_send(Event::Failed(reason.clone()));
        }
    }
}

fn turn<C: Compute>(
    worker: &mut Worker<C>,
    first: Option<Incoming>,
    requests: &mut mpsc::Receiver<Incoming>,
) -> Turn {
    first.into_iter().for_each(|incoming| worker.take(incoming));
    let ended = loop {
        match requests.try_recv() {
            Ok(incoming) => worker.take(incoming),
            Err(error) => break error == TryRecvError::Disconnected,
        }
    };
    match (worker.is_idle(), ended) {
        (false, _) => {
            worker.turn();
            Turn::Worked
        }
        (true, _) if worker.tidy() => Turn::Worked,
        (true, false) => Turn::Idle,
        (true, true) => Turn::Ended,
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
    said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
