//! Routing as data: which experts every token chose in every layer.
//! A noun: it reads, writes and summarises records and decides nothing.
//!
//! Modules in reading order:
//! - `key`: the name of one expert, shared by everything that speaks of experts.

#![forbid(unsafe_code)]

mod key;

pub use key::{ExpertGrid, ExpertKey};
