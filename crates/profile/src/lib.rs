//! A model's routing profile (N1): how many tokens each expert gets, which are popular, how
//! uneven layers are, and how soon experts come back. A noun: it counts and decides nothing.
//!
//! Modules in reading order:
//! - [`profile`]: what a profile holds and what follows from it: rank, imbalance, shares.
//! - [`overlap`]: how far two profiles agree on the busiest experts (Overlap@K).
//! - [`reuse`]: how much of a cache's size an expert's return takes, hence expected hit rates.
//! - [`passes`]: what passes of the model cost where it was recorded.
//! - [`chosen`]: what replay of it chose for a machine.
//! - [`builder`]: a profile from a trace, visit by visit.
//! - [`file`](mod@file): the format, JSON-lines with limits.

#![forbid(unsafe_code)]

pub mod builder;
pub mod chosen;
pub mod file;
pub mod overlap;
pub mod passes;
pub mod profile;
pub mod reuse;

pub use builder::ProfileBuilder;
pub use chosen::{Arrangement, ChosenRules};
pub use file::{ProfileError, ProfileProblem};
pub use overlap::{OtherShape, overlap_at};
pub use passes::{PassCosts, PhaseCosts, PhasesCosts};
pub use profile::{Held, LayerCounts, Origin, Overlap, Profile, ProfileHeader};
pub use reuse::Reuse;
