//! Judgement before a run: from a machine, a model and what was measured to settings, and to the
//! speed they should give. No clock, file, thread: a driver hands over everything known.
//!
//! Modules in reading order:
//! - [`cores`]: A1, A2, A4: which CPU cores decode.

#![forbid(unsafe_code)]

pub mod cores;
