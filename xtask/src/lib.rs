//! Automation of this repository; no part of the product.
//!
//! In reading order:
//! - [`tidy`]: the house rules as a checker.
//! - [`synth`]: models of random weights, any architecture and size.
//! - [`upcycle`]: a mixture of experts that computes exactly what a dense model does.
//! - [`gguf_source`]: headers and tokenizers of existing files.
//! - [`smollm2`]: fetches the one real model that tests start from.
//! - [`servers`]: servers as processes of their own, ours and llama.cpp's.
//! - [`load`]: many streams at once against servers.
//! - [`cache`]: where models live.
//! - [`capped`]: ways of running a model compared under memory limits.
//! - [`venv`]: Python with packages from PyPI.
//! - [`fixtures`]: all of these for tests, or a word why not.
//! - [`output`]: files under construction and what is told of them.
#![forbid(unsafe_code)]

pub mod cache;
pub mod capped;
pub mod fixtures;
pub mod gguf_source;
pub mod load;
pub mod output;
pub mod servers;
pub mod smollm2;
pub mod synth;
pub mod tidy;
pub mod upcycle;
pub mod venv;

#[cfg(test)]
mod dequant;

use std::path::Path;

/// The root of the workspace this program was built from.
pub fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}
