//! The machine this program runs on, read from the system. Chooses nothing and changes nothing.
//!
//! Every reader takes a root directory, `/` on a real machine, so that a folder of copied
//! files stands for any machine. What a system does not tell is `None`, never a guess.
//!
//! Reading order:
//! * [`memory`]: how much memory there is, and how much of it this process may use.
//! * [`cgroup`]: the control groups that limit this process.
//! * [`pressure`]: how long tasks waited for memory (PSI).
//! * [`refaults`]: pages that were dropped and read again.
//! * [`self_memory`]: what this process holds itself.
//! * `files`: bounded reads of small text files.
#![forbid(unsafe_code)]

pub mod cgroup;
mod files;
pub mod memory;
pub mod pressure;
pub mod refaults;
pub mod self_memory;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
