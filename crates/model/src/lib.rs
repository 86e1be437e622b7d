//! What a model is: GGUF files read into shapes, sizes and the place of every expert.
//!
//! Contains no FFI, no threads, no clock and no tensor data: only headers are read. Hostile bytes
//! meet this crate first and never panic it.
//!
//! Modules in reading order:
//!
//! * [`gguf`]: the container format: types, reader with limits, writer, virtual layout.
#![forbid(unsafe_code)]

pub mod gguf;
