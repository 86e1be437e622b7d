//! What tests of all crates share; no part of the product, and never a dependency of it.
//!
//! In reading order:
//! - [`fixtures`]: models, data and Python for tests, or a word why not.
//! - [`synth`]: models of random weights, any architecture and size.
//! - [`upcycle`]: a mixture of experts that computes exactly what a dense model does.
//! - [`smollm2`]: fetches the one real model that tests start from.
//! - [`gguf_source`]: headers and tokenizers of existing files.
//! - [`output`]: files under construction and what is said of them.
//! - [`cache`]: where models live.
//! - `machine_tree`: a folder that stands for the root of a machine (Unix only: it has links).
//! - [`explore`]: a scenario of threads under every order of them.
//! - [`hostile`]: requests that try to do a server harm.
//! - [`hub`]: a server that speaks the model hub's protocol, also badly.
//! - `terminal`: a program on a terminal of its own (Unix only).
//! - [`node`]: Node with packages from npm; [`venv`]: Python with packages from PyPI.
#![forbid(unsafe_code)]

pub mod cache;
pub mod explore;
pub mod fixtures;
pub mod gguf_source;
pub mod hostile;
pub mod hub;
#[cfg(unix)]
pub mod machine_tree;
pub mod node;
pub mod output;
pub mod smollm2;
pub mod synth;
#[cfg(unix)]
pub mod terminal;
pub mod upcycle;
pub mod venv;

#[cfg(test)]
mod dequant;
