//! Reads of expert bytes: requests with leases go in, filled slots come out, in any order.
//! Decides nothing but the order demand-before-prefetch that the caller asked for.
//!
//! ```text
//!  submit ─► queue (demand, prefetch) ─► chunks ─► backend: pool | uring ─► landed
//!              │ cancel, promote           ▲                                  │
//!              ▼                           └───── one retry, buffered ◄───────┤ error
//!           request                                                           ▼
//!                                                        poll / wait ◄─ Completion
//! ```
//!
//! One request is one expert: its matrices are read together and it completes when all of them
//! are there. A failed request gives its leases back inside the error.
//!
//! * `request`: what is asked for and what comes back.
//! * `files`: the files, direct or buffered. `queue`: who is next.
//! * `job`: a request cut into chunks. `desk`: all requests under way, shared by the threads.
//! * `target`: where a chunk's bytes land: in place, or staged and copied.
//! * `pool`, `uring`: the backends. `faulty`: faults by seed. `choose`: which is faster here.

mod choose;
mod desk;
mod faulty;
mod files;
mod job;
mod pool;
mod queue;
mod request;
mod target;
mod uring;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use choose::{Choice, ChooseError, Measured, ProbeLimit, choose, choose_within};
pub use faulty::FaultPlan;
pub use files::{FileMode, Files, FilesError, forget_cached};
pub use job::CHUNK_BYTES_MAX;
pub use queue::Priority;
pub use request::{Completion, Piece, ReadFailed, Request, Tag, Wanted};

use crate::counters::Counters;
use desk::Desk;

/// Most reads in flight that can be asked for.
pub const IN_FLIGHT_MAX: u32 = 64;

/// Reads in flight unless told otherwise; see `docs/decisions/0004-expert-reads.md`.
pub const IN_FLIGHT_DEFAULT: u32 = 4;

/// Why bytes did not arrive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system reported an error twice.
    #[error("{}: reading {len_bytes} bytes at {offset} failed twice", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// How much.
        len_bytes: usize,
        /// The second error.
        source: io::Error,
    },
    /// Fewer bytes than asked for, twice.
    #[error(
        "{}: {got_bytes} of {len_bytes} bytes at {offset}; was the file truncated?", path.display()
    )]
    Short {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// How much was wanted.
        len_bytes: usize,
        /// How much came.
        got_bytes: usize,
    },
    /// The file was written to since it was opened: its bytes belong to another model.
    #[error("{}: changed while in use; restart to load it anew", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The request names a range the file did not have when it was opened.
    #[error("{}: {len_bytes} bytes at {offset} lie beyond its end", path.display())]
    BeyondEnd {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// How much.
        len_bytes: u64,
    },
    /// The request names a file that was not opened.
    #[error("the model has no file number {file}")]
    NoSuchFile {
        /// Index of the file.
        file: usize,
    },
    /// The data would not fit into the slot.
    #[error("{len_bytes} bytes at {at_bytes} do not fit into a slot of {slot_bytes}")]
    DoesNotFit {
        /// Where in the slot.
        at_bytes: usize,
        /// How much.
        len_bytes: u64,
        /// Bytes of the slot.
        slot_bytes: usize,
    },
}

/// Which mechanism reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A thread per read in flight, each in `pread`.
    Pool,
    /// One thread and an io_uring (Linux 5.6 or later, and not forbidden by the system).
    Uring,
}

impl Backend {
    /// Every one, the preferred first.
    pub const ALL: [Self; 2] = [Self::Pool, Self::Uring];
}

/// How a reader is opened.
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    /// Which mechanism.
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
    InFlight {
        /// The number asked for.
        in_flight: u32,
    },
    /// The system refused the mechanism.
    #[error("the system refused {backend:?}; the other backend may work")]
    Refused {
        /// Which.
        backend: Backend,
        /// The system's reason.
        source: io::Error,
    },
}

/// What every backend does: takes chunks from the desk it was started with and lands them.
trait Workers: Send + Sync {
    /// Says that the desk has more to do.
    fn wake(&self);

    /// Called when the desk is closed: returns when nothing of it is in flight any more.
    fn join(&mut self);
}

/// Ends the process when a backend's thread unwinds, which only a bug can make it do: the
/// system might go on writing into slots nobody guards any more, and callers would wait forever.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        eprintln!("store: a thread that reads experts failed; this is a bug");
        std::process::abort();
    }
}

/// Reads experts until dropped; shared between threads by reference.
pub struct Reader {
    desk: Arc<Desk>,
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
        let desk = Arc::new(Desk::new(files, options.faults.clone()));
        let workers: io::Result<Box<dyn Workers>> = match backend {
            Backend::Uring => uring::start(Arc::clone(&desk), in_flight).map(|w| Box::new(w) as _),
            Backend::Pool => pool::start(Arc::clone(&desk), in_flight).map(|w| Box::new(w) as _),
        };
        let workers = workers.map_err(|source| ReaderError::Refused { backend, source })?;
        Ok(Self { desk, workers, options })
    }

    /// Puts requests in line, all at once, and returns without waiting.
    pub fn submit(&self, requests: impl IntoIterator<Item = Request>) {
        self.desk.submit(requests);
        self.workers.wake();
    }

    /// A completion that is there already.
    pub fn poll(&self) -> Option<Completion> {
        self.desk.poll()
    }

    /// The next completion; `None` when nothing is under way or the time is over.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Completion> {
        self.desk.wait(timeout)
    }

    /// Takes a request back that has not begun; `None` if it has, or is unknown.
    pub fn cancel(&self, tag: Tag) -> Option<Request> {
        self.desk.cancel(tag)
    }

    /// Makes a prefetch a demand, also one that has begun; false if it is not under way.
    pub fn promote(&self, tag: Tag) -> bool {
        self.desk.promote(tag)
    }

    /// Requests submitted whose completion was not taken yet.
    pub fn under_way(&self) -> usize {
        self.desk.under_way()
    }

    /// Sums since the reader was opened.
    pub fn counters(&self) -> Counters {
        self.desk.counters()
    }

    /// The files it reads.
    pub fn files(&self) -> &Files {
        self.desk.files()
    }

    /// How it was opened.
    pub fn options(&self) -> &ReaderOptions {
        &self.options
    }

    /// Memory of staging buffers when all are in use, for the budget (M3).
    pub fn staging_bytes(&self) -> u64 {
        u64::from(self.options.in_flight) * target::STAGING_BYTES as u64
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.desk.close();
        self.workers.wake();
        self.workers.join();
    }
}
