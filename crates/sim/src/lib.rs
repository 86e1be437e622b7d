//! The simulator: the same judgement as the engine, driven by virtual time and recorded or
//! synthetic routing. It depends on nouns and judgement only.
//!
//! Modules in reading order:
//! - [`world`]: how long things really take; [`faults`] and [`predictions`] of a stated quality.
//! - [`drive`](mod@drive): the event loop, sibling of the engine's.
//! - [`outcome`]: hit rate, speed, utilisation, idle link time.
//! - [`gantt`](mod@gantt): a stretch of a drive as a picture.
//! - [`shape`]: models as the simulator sees them, by name or written out.
//! - [`setup`]: from a machine, a model and names to a drive.
//! - [`hosts`]: other machines that compute experts (W9, W10), beside a split by layers.
//! - [`replay`]: a trace through a cache under a policy, counting hits (M6).
//! - [`holdout`]: policies compared on the half of a trace their parameters have not seen.
//! - [`choose`](mod@choose): rules of each memory chosen by replay, with a hold-out (M6).
//! - [`fewer`]: recorded routing with fewer experts per token.
//! - [`synth`]: synthetic routing with chosen statistics, by seed.
//! - [`fit`]: synthetic routing fitted to a recorded trace, and how well.
//! - [`curves`]: hit rate over cache size for every policy.
//! - [`chart`]: the curves as a picture.
//! - [`report`]: the comparison of cache policies as one document.
//! - [`rerun`]: a recorded run again with its measured costs (M1).
//! - [`beside`]: a recorded timeline again, from what it shows.
//! - [`explain`]: where a run's time went, and what would have changed it (M2).

#![forbid(unsafe_code)]

pub mod beside;
pub mod chart;
pub mod choose;
pub mod curves;
pub mod drive;
pub mod explain;
pub mod faults;
pub mod fewer;
pub mod fit;
#[cfg(test)]
mod fixture;
pub mod gantt;
pub mod holdout;
pub mod hosts;
pub mod outcome;
pub mod predictions;
pub mod replay;
pub mod report;
pub mod rerun;
pub mod setup;
pub mod shape;
pub mod synth;
pub mod world;

pub use choose::{Choice, choose};
pub use drive::{DriveError, drive};
pub use motley_sched::spans;
pub use outcome::Outcome;
pub use world::{DenseCost, World};
