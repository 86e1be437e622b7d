//! `cargo xtask chaos`: a server on a disk that fails, beside a neighbour that takes memory, with
//! clients that leave and a system that stops the process: every answer must be right or an error,
//! nobody may wait in silence, and memory must stay under its ceiling. Needs Linux, FUSE and the
//! right to make control groups.
//!
//! * `weather`: how bad the disk is when; pure.
//! * `disk`: the file system that follows it.
//! * `client`: one who asks, and what came of each question.
//! * `run`: all of it together, and the verdict.

mod client;
mod disk;
mod run;
mod weather;

pub use run::{Chaos, Endured, endure};
