//! `cargo xtask capped`: several ways of running one model, in turn, each in a process of its
//! own under a memory limit and with a cold page cache. What claims about models larger than
//! memory rest on. Needs Linux and the right to make control groups.
//!
//! * `cage`: the control group of one run.
//! * `way`: what is run.
//! * `worker`: one process of it, cold.
//! * `compare`: all ways under all limits.
//! * `tally`: many runs as a table.
//! * `sweep`: a run without flags against hand-picked ones.
//! * `soak`: one long run beside a neighbour that takes memory.
//! * `serving`: a server under load for long.
//! * `versus`: `motley run` with some flags against others.

pub(crate) mod cage;
mod compare;
mod serving;
mod soak;
mod sweep;
mod tally;
mod versus;
mod way;
pub(crate) mod worker;

pub use compare::{Comparison, run};
pub use serving::{ServeSoak, ServeSoaked, serve_soak};
pub use soak::{Soak, Soaked, soak, take_memory};
pub use sweep::{Sweep, sweep};
pub use tally::{CappedRun, table};
pub use versus::{Versus, versus};
pub use way::Way;
pub(crate) use worker::drop_page_cache;
