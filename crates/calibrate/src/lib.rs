//! `motley-calibrate`: knows this machine. Reads what it has, measures what it costs, and keeps
//! both for plans. Plans nothing itself.
//!
//! Modules, in reading order:
//! * [`doctor`]: what is there, what is used of it, what is missing and how to get it.
//! * [`describe`](mod@describe): this machine in the words of a machine file.
//! * [`measure`](mod@measure): experts, memory and disk within a time limit, fitted.
//! * [`library`]: the files calibrations are kept in; [`tuning`]: those of `motley tune`.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a driver: it reads the clock and owns threads")]

pub mod describe;
pub mod doctor;
pub mod library;
pub mod measure;
pub mod tuning;
