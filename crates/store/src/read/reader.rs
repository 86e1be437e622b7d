//! The reader: starts a backend and passes requests and completions through the read queue.
//! Chooses no backend; see `choose`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::faulty::FaultPlan;
use super::files::Files;
use super::queue::ReadQueue;
use super::request::{Completion, Request};
use super::workers::Workers;
use super::{pool, uring};
use crate::counters::Counters;

/// Most reads in flight that can be asked for.
pub const IN_FLIGHT_MAX: u32 = 64;

/// Default number of reads in flight; see `docs/decisions/0004-expert-reads.md`.
pub const IN_FLIGHT_DEFAULT: u32 = 4;

/// Which mechanism reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A thread per read in flight, each in `pread`.
    Pool,
    /// One thread and an io_uring (Linux 5.10 or later, and not forbidden by the system).
    Uring,
}

impl Backend {
    /// Every one, the preferred first.
    pub const ALL: [Self; 2] = [Self::Pool, Self::Uring];
}

/// How a reader is opened.
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    pub backend: Backend,
    /// Most reads in flight, 1 to [`IN_FLIGHT_MAX`].
    pub in_flight: u32,
    /// Faults to inject, for tests.
    pub faults: Option<FaultPlan>,
}

impl ReaderOptions {
    /// `backend` with the default number of reads in flight and no faults.
    pub fn new(backend: Backend) -> Self {
        Self { backend, in_flight: IN_FLIGHT_DEFAULT, faults: None }
    }
}

/// Why a reader could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// The number of reads in flight is 0 or too large.
    #[error("{in_flight} reads in flight: between 1 and {IN_FLIGHT_MAX} are possible")]
    InFlight { in_flight: u32 },
    /// The system refused the mechanism.
    #[error("the system refused {backend:?}; the other backend may work")]
    Refused { backend: Backend, source: io::Error },
}

/// Reads experts until dropped; shared between threads by reference.
pub struct Reader {
    files: Arc<Files>,
    queue: Arc<ReadQueue>,
    workers: Box<dyn Workers>,
    options: ReaderOptions,
}

impl Reader {
    /// Starts the threads of a backend on `files`.
    pub fn open(files: Arc<Files>, options: ReaderOptions) -> Result<Self, ReaderError> {
        let ReaderOptions { backend, in_flight, .. } = options;
        if !(1..=IN_FLIGHT_MAX).contains(&in_flight) {
            return Err(ReaderError::InFlight { in_flight });
        }
        let queue = Arc::new(ReadQueue::new(Arc::clone(&files) as _, options.faults.clone()));
        let mine = Arc::clone(&queue);
        let workers: io::Result<Box<dyn Workers>> = match backend {
            Backend::Uring => {
                uring::start(mine, Arc::clone(&files), in_flight).map(|w| Box::new(w) as _)
            }
            Backend::Pool => pool::start(mine, in_flight).map(|w| Box::new(w) as _),
        };
        let workers = workers.map_err(|source| ReaderError::Refused { backend, source })?;
        Ok(Self { files, queue, workers, options })
    }

    /// Queues requests, all at once, and returns without waiting.
    pub fn submit(&self, requests: impl IntoIterator<Item = Request>) {
        self.queue.submit(requests);
        self.workers.wake();
    }

    /// A completion, if one is ready.
    pub fn poll(&self) -> Option<Completion> {
        self.queue.poll()
    }

    /// The next completion; `None` when nothing is under way or the time is over.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Completion> {
        self.queue.wait(timeout)
    }

    /// Waits until a completion is ready, and leaves it there; false when nothing is under way.
    pub fn wait_until_ready(&self) -> bool {
        self.queue.wait_until_ready()
    }

    /// Requests submitted whose completion was not taken yet.
    pub fn under_way(&self) -> usize {
        self.queue.under_way()
    }

    /// Sums since the reader was opened.
    pub fn counters(&self) -> Counters {
        self.queue.counters()
    }

    /// The files it reads.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// How it was opened.
    pub fn options(&self) -> &ReaderOptions {
        &self.options
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.queue.close();
        self.workers.wake();
        self.workers.join();
    }
}
