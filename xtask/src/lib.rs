//! Automation of this repository; no part of the product.
//!
//! In reading order:
//! - [`tidy`]: the house rules as a checker.
//! - [`check`]: checkers of threads and memory.
//! - [`servers`]: servers as processes of their own, ours and llama.cpp's.
//! - [`load`]: many streams at once against servers.
//! - [`hostile`]: hostile requests against our server, beside an honest client.
//! - [`capped`]: ways of running a model compared under memory limits.
//! - `chaos`: a server while its disk, its memory and its clients fail.
//! - [`hosts`]: a head and its workers in network namespaces.
//! - [`mutate`]: headers changed at random, and what the program makes of them.
//! - [`fuzz`]: the fuzz targets, each for a while.
//! - [`docs`]: the book, its pages that are made, and the checks of all pages.
//! - [`dropin`]: the library for other people's llama.cpp.
//! - [`targets`]: whether one tree is good for every system.
//! - [`dist`]: packages, and what they do on clean systems.
//!
//! The models that tests run on are written by `motley-testkit`.
#![forbid(unsafe_code)]

pub mod capped;
#[cfg(target_os = "linux")]
pub mod chaos;
pub mod check;
pub mod dist;
pub mod docs;
pub mod dropin;
pub mod fuzz;
pub mod hostile;
pub mod hosts;
pub mod load;
pub mod mutate;
pub mod servers;
pub mod targets;
pub mod tidy;

use std::path::Path;

/// The root of the workspace this program was built from.
pub fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}
