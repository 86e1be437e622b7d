//! Where requests are handed in: checked, counted and queued for the worker. Computes nothing.

use super::compute::Compute;
use super::health::Health;
use super::shared::{BatchFigures, BatchOptions, Incoming, Shared};
use super::stream::{Ask, Event};
use super::supervise::Supervised;
use super::worker::Worker;
use crate::clock::Clock;
use motley_sched::batch::{self, Sharing};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::mpsc;

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The planner refuses it.
    #[error(transparent)]
    Refused(#[from] batch::Refused),
    /// A text's vector is asked for, and the model answers.
    #[error("this model answers with text: its file does not say how a vector is made of one")]
    MakesNoVectors,
    /// An answer is asked for, and the model makes vectors.
    #[error("this model makes vectors of texts and does not answer")]
    MakesVectors,
    /// No more requests are taken.
    #[error("the engine is shutting down")]
    Closed,
    /// The thread that answers has ended; [`Door::health`] says why.
    #[error("the engine has failed and must be restarted; its log says why")]
    Dead,
}

/// Hands requests to one worker. Cheap to clone; the worker ends when the last clone is gone
/// and every answer is done.
#[derive(Clone)]
pub struct Door {
    requests: mpsc::Sender<Incoming>,
    shared: Arc<Shared>,
    options: BatchOptions,
    longest: u32,
}

/// A worker over `compute`, not running yet, and the door to it.
pub fn open<C: Compute>(
    compute: C,
    options: &BatchOptions,
    sharing: Sharing,
    clock: Arc<dyn Clock>,
) -> (Door, Supervised<C>) {
    let (requests, receiver) = mpsc::channel(options.waiting.max(1));
    let shared = Arc::new(Shared::new(clock));
    let worker = Worker::new(compute, options, sharing, Arc::clone(&shared));
    let longest = worker.longest();
    let door = Door { requests, shared: Arc::clone(&shared), options: *options, longest };
    (door, Supervised::new(worker, receiver, shared))
}

impl Door {
    /// Takes a request in. Its events arrive at the receiver; dropping the receiver
    /// stops it within one step.
    pub fn submit(&self, ask: Ask) -> Result<mpsc::Receiver<Event>, SubmitError> {
        self.check(&ask)?;
        // Never full: at most one event per token, and the end.
        let most = ask.max_tokens.min(self.longest as usize) + 2;
        let (events, receiver) = mpsc::channel(most);
        let id = batch::RequestId(self.shared.next_id.fetch_add(1, Relaxed));
        self.shared.waiting.fetch_add(1, Relaxed);
        let came = self.shared.clock.now();
        match self.requests.try_send(Incoming { id, ask, events, came }) {
            Ok(()) => Ok(receiver),
            Err(error) => {
                let waiting = self.shared.waiting.fetch_sub(1, Relaxed) - 1;
                Err(match error {
                    mpsc::error::TrySendError::Full(_) => {
                        batch::Refused::QueueFull { waiting }.into()
                    }
                    mpsc::error::TrySendError::Closed(_) if self.shared.health.is_dead() => {
                        SubmitError::Dead
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

    /// Whether requests are being answered.
    pub fn health(&self) -> Health {
        self.shared.health.at(self.shared.clock.now())
    }

    /// Counts so far, as of the last step.
    pub fn figures(&self) -> BatchFigures {
        let mut figures = *self.shared.figures.lock().expect("no panic holds this lock");
        figures.planner.waiting = self.shared.waiting.load(Relaxed);
        figures
    }

    fn check(&self, ask: &Ask) -> Result<(), SubmitError> {
        match (ask.embeds, self.options.embedding) {
            (true, None) => return Err(SubmitError::MakesNoVectors),
            (false, Some(_)) => return Err(SubmitError::MakesVectors),
            (true, Some(_)) | (false, None) => {}
        }
        if ask.prompt.is_empty() {
            return Err(batch::Refused::Empty.into());
        }
        if ask.prompt.len() >= self.longest as usize {
            let tokens = ask.prompt.len();
            return Err(batch::Refused::TooLong { tokens, longest: self.longest }.into());
        }
        let waiting = self.shared.waiting.load(Relaxed);
        if waiting >= self.options.waiting {
            return Err(batch::Refused::QueueFull { waiting }.into());
        }
        Ok(())
    }
}
