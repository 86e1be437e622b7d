//! `motley-store`: expert bytes and who may touch them. Reads ranges of a model's files into
//! slots of memory and lends those out; never chooses what to read, keep or evict.
//!
//! Modules, in reading order:
//! * `sync`: what threads wait with; `memory`: anonymous mappings.
//! * [`arena`]: slots of one shape; leases as types.
//! * [`expert`]: the slots of one expert, held together.
//! * [`mapped`]: the files mapped, for weights computed where they lie and copies to a device.
//! * [`counters`]: figures of the disk.
//! * [`read`]: requests in, filled slots out; io_uring or a pool of threads.

#![allow(clippy::disallowed_methods, reason = "a hand: it may own threads and read the clock")]

pub mod arena;
pub mod counters;
pub mod expert;
pub mod mapped;
mod memory;
pub mod read;
mod sync;

pub use arena::{Arena, ArenaError, ArenaSpec, Filled, MAX_SLOTS, SlotLease};
pub use counters::Counters;
pub use expert::{ExpertLease, ExpertSlot, FilledExpert};
pub use mapped::{MapError, MappedExperts, MappedFiles};
pub use memory::HugePages;
pub use read::{
    Alignment, Backend, Choice, ChooseError, Completion, Disk, ExpertRead, FaultPlan, FileFacts,
    FileMode, Files, FilesError, Piece, Priority, ProbeLimit, ReadError, ReadFailed, ReadSpeed,
    Reader, ReaderError, ReaderOptions, Request, SteppedReader, Tag, choose, choose_within,
    forget_cached,
};
