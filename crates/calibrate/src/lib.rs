//! `motley-calibrate`: knows this machine. Reads what it has and says what Motley can use.
//!
//! Modules, in reading order:
//! * [`doctor`]: what is there, what is used of it, what is missing and how to get it.
#![forbid(unsafe_code)]

pub mod doctor;
