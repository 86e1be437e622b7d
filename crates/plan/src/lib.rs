//! Judgement before a run: from a machine, a model and what was measured to settings, and to the
//! speed they should give. No clock, file, thread: a driver hands over everything known.
//!
//! Modules in reading order:
//! - [`budget`]: M3, how one ceiling for memory divides.
//! - [`cores`]: A1, A2, A4: which CPU cores decode.
//! - [`tiers`]: N2, N4, N5, W4, W6: static shapes, blocks, and sharing between units.

#![forbid(unsafe_code)]

pub mod budget;
pub mod cores;
pub mod tiers;
