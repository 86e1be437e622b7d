//! Reads of expert bytes: requests with leases go in, filled slots come out, in any order.
//! Decides nothing but the order demand-before-prefetch that the caller asked for.
//!
//! ```text
//!  submit ─► queue (demand, prefetch) ─► chunks ─► backend: pool | uring ─► landed
//!                                          ▲                                  │
//!                                          └───── one retry, buffered ◄───────┤ error
//!                                                                             ▼
//!                                                        poll / wait ◄─ Completion
//! ```
//!
//! One request is one expert: its matrices are read together and it completes when all of them
//! are there. A failed request gives its leases back inside the error.
//!
//! * `request`: requests and completions; `error`: why bytes did not arrive.
//! * `disk`: files as the queue sees them; `files`: the system's, direct or buffered; `system`: how each system opens them. `priority`: which request is next.
//! * `job`: a request cut into chunks. `queue`: the read queue, shared by the threads.
//! * `target`: where a chunk's bytes land: in place, or staged and copied.
//! * `workers`: what backends have in common; `pool`, `uring`: the backends.
//! * `reader`: a backend, started; `stepped`: one without threads. `choose`: which backend is faster here.
//! * `faulty`: faults by seed. `schedules`: the queue and the pool under every order of threads, in tests.

mod choose;
mod disk;
mod error;
mod faulty;
mod files;
mod job;
mod pool;
mod priority;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "the ring asks whether it was closed; the pool is told")
)]
mod queue;
mod reader;
mod request;
#[cfg(test)]
mod schedules;
mod stepped;
mod system;
mod target;
mod uring;
mod workers;

pub use choose::{Choice, ChooseError, ProbeLimit, ReadSpeed, choose, choose_within};
pub use disk::{Alignment, Disk, FileFacts};
pub use error::ReadError;
pub use faulty::FaultPlan;
pub use files::{FileMode, Files, FilesError, forget_cached};
pub use job::CHUNK_BYTES_MAX;
pub use priority::Priority;
pub use reader::{Backend, IN_FLIGHT_DEFAULT, IN_FLIGHT_MAX, Reader, ReaderError, ReaderOptions};
pub use request::{Completion, ExpertRead, Piece, ReadFailed, Request, Tag};
pub use stepped::SteppedReader;
