//! motley-sched.

#![forbid(unsafe_code)]

pub mod cache;
