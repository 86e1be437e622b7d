//! Routing as data: which experts every token chose in every layer.
//! A noun: it reads, writes and summarises records and decides nothing.
//!
//! Modules in reading order:
//! - `key`: the name of one expert, shared by all crates.
//! - [`line_file`]: JSON lines after a header with a version; profiles are such files too.
//! - [`whole_file`]: files that are there whole or not at all; everything kept is written so.
//! - [`rights`]: who may read what is kept.
//! - [`record`]: header and visit, the two lines of the format, and what makes them valid.
//! - [`read`]: streaming reader, and `VisitSource`, what every origin of visits looks like.
//! - [`mod@write`]: streaming writer.
//! - [`import`]: readers of other projects' traces.
//! - [`memory`]: a whole trace in memory, for offline work.
//! - `prediction`: how well a layer predicts the next.
//! - [`run`]: what one run did, in figures.
//! - `speculation`: what became of tokens guessed ahead.
//! - `streaming`: how it read experts from disk.
//! - `worker`: what another machine did for it.
//! - [`summary`]: popularity, imbalance, reuse, overlap, working sets.

#![forbid(unsafe_code)]

pub mod import;
mod key;
pub mod line_file;
pub mod memory;
mod prediction;
pub mod read;
pub mod record;
pub mod rights;
pub mod run;
mod speculation;
mod streaming;
pub mod summary;
pub mod whole_file;
mod worker;
pub mod write;

pub use key::{ExpertGrid, ExpertKey};
pub use memory::Trace;
pub use read::{TraceError, TraceReader, VisitSource};
pub use record::{Phase, Problem, TraceHeader, Visit};
pub use run::{EnergyRecord, EnergySource, PhaseRecord, RunRecord, SharedRecord};
pub use speculation::{DraftRecord, SpeculationRecord};
pub use streaming::StreamingRecord;
pub use summary::{Summary, SummaryBuilder};
pub use worker::{WorkerRecord, WorkerTimes};
pub use write::TraceWriter;
