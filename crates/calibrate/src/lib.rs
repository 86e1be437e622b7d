//! `motley-calibrate`: knows this machine. Reads what it has, measures what it costs, and keeps
//! both for plans. Plans nothing itself.
//!
//! Modules, in reading order:
//! * [`doctor`]: what is there, what is used of it, what is missing and how to get it.
//! * [`describe`](mod@describe): this machine in the words of a machine file.
//! * [`measure`](mod@measure): experts, memory and disk within a time limit, fitted.
//! * `kind`: which experts are measured.
//! * [`library`]: the files calibrations are kept in; [`tuning`]: those of `motley tune`.
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "llama"), allow(dead_code, reason = "part of it serves measuring"))]
#![allow(clippy::disallowed_methods, reason = "a driver: it reads the clock and owns threads")]

pub mod describe;
pub mod doctor;
mod kind;
pub mod library;
#[cfg(feature = "llama")]
pub mod measure;
pub mod tuning;
