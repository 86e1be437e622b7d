//! Which threads compute: sets for both phases (A5), fewer while other programs want the cores,
//! and the search for the best set.
//!
//! * [`cores`]: this machine's cores; `pools`: pools made from sets of threads.
//! * `contention`: fewer threads while other programs take the cores.
//! * [`mod@tune`]: choices of cores measured on a live session.

#[cfg(feature = "llama")]
pub(crate) mod contention;
pub mod cores;
#[cfg(feature = "llama")]
pub(crate) mod pools;
#[cfg(feature = "llama")]
pub mod tune;
