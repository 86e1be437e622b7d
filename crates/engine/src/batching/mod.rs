//! Continuous batching: many answers at once on one context. Requests join and leave
//! between steps; one thread owns the context and does what `motley_sched::batch` says.
//!
//! * `worker`: that thread.
//! * `shared`: what it and its handles share.
//! * `stream`: one request on its way: sampler, text, stop strings, log-probabilities.
//! * `stop`: stop strings in text that arrives in pieces.
//!
//! Sums inside ggml's kernels depend on how many rows are computed together and on
//! where keys lie in the cache, so a stream's last bits depend on its neighbours. With
//! [`BatchOptions::exact`] each stream has its own part of the cache and is computed by
//! itself, in the chunks a [`crate::Session`] would use: its tokens are those of a
//! session, whatever runs beside it.

mod shared;
mod stop;
mod stream;
mod worker;

pub use motley_sched::batch::Refused;
pub use shared::{BatchFigures, BatchOptions};
pub use stream::{Ask, Candidate, Done, Event, Piece, Reason, SaidToken};

use crate::blocks::resident::ResidentExperts;
use crate::blocks::routing::RoutingWatcher;
use crate::{Engine, SessionError};
use motley_sched::batch;
use shared::{Incoming, Shared};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::mpsc;
use worker::Worker;

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The planner refuses it.
    #[error(transparent)]
    Refused(#[from] batch::Refused),
    /// No more requests are taken.
    #[error("the engine is shutting down")]
    Closed,
}

/// The running batch: hands requests to its thread. Cheap to clone; the thread ends
/// when the last clone is gone and every answer is done.
#[derive(Clone)]
pub struct Batching {
    requests: mpsc::Sender<Incoming>,
    shared: Arc<Shared>,
    engine: Arc<Engine>,
    options: BatchOptions,
    longest: u32,
    resident: Option<Arc<ResidentExperts>>,
}

impl Batching {
    /// Makes the context and starts its thread. `watcher` sees every routing decision.
    #[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
    pub fn start(
        engine: Arc<Engine>,
        options: &BatchOptions,
        watcher: Option<Box<dyn RoutingWatcher>>,
    ) -> Result<Self, SessionError> {
        let (sender, receiver) = mpsc::channel(options.waiting.max(1));
        let shared = Arc::new(Shared::default());
        let worker = Worker::new(&engine, options, watcher, Arc::clone(&shared))?;
        let (longest, resident) = (worker.longest(), worker.resident());
        std::thread::spawn(move || worker.run(receiver));
        Ok(Self { requests: sender, shared, engine, options: *options, longest, resident })
    }

    /// Takes a request in. Its events arrive at the receiver; dropping the receiver
    /// stops it within one step.
    pub fn submit(&self, ask: Ask) -> Result<mpsc::Receiver<Event>, SubmitError> {
        self.check(&ask)?;
        // Never full: at most one event per token, and the end.
        let most = ask.max_tokens.min(self.longest as usize) + 2;
        let (events, receiver) = mpsc::channel(most);
        let id = batch::RequestId(self.shared.next_id.fetch_add(1, Relaxed));
        self.shared.waiting.fetch_add(1, Relaxed);
        match self.requests.try_send(Incoming { id, ask, events }) {
            Ok(()) => Ok(receiver),
            Err(error) => {
                let waiting = self.shared.waiting.fetch_sub(1, Relaxed) - 1;
                Err(match error {
                    mpsc::error::TrySendError::Full(_) => {
                        batch::Refused::QueueFull { waiting }.into()
                    }
                    mpsc::error::TrySendError::Closed(_) => SubmitError::Closed,
                })
            }
        }
    }

    /// Longest sequence: prompt and answer together.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// The shape it was started with.
    pub fn options(&self) -> &BatchOptions {
        &self.options
    }

    /// The model.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Counts so far, as of the last step.
    pub fn figures(&self) -> BatchFigures {
        let mut figures = *self.shared.figures.lock().expect("no panic holds this lock");
        figures.planner.waiting = self.shared.waiting.load(Relaxed);
        figures
    }

    /// Which experts are in memory; `None` when all are.
    pub fn resident(&self) -> Option<&ResidentExperts> {
        self.resident.as_deref()
    }

    fn check(&self, ask: &Ask) -> Result<(), batch::Refused> {
        if ask.prompt.is_empty() {
            return Err(batch::Refused::Empty);
        }
        if ask.prompt.len() >= self.longest as usize {
            let tokens = ask.prompt.len();
            return Err(batch::Refused::TooLong { tokens, longest: self.longest });
        }
        let waiting = self.shared.waiting.load(Relaxed);
        if waiting >= self.options.waiting {
            return Err(batch::Refused::QueueFull { waiting });
        }
        Ok(())
    }
}
