//! `libggml_motley`: Motley as a backend of an unchanged llama.cpp, loaded by
//! `GGML_BACKEND_PATH=libggml_motley.so`. Takes the routed experts of models that do not fit into
//! memory, or that GPUs of the host can share; everything else stays the host's.
//!
//! Modules, in reading order:
//! * `entry`: what ggml calls, with where the call came from; `enter`: our registry for it.
//! * `wishes`: what the variables ask for.
//! * `models`: the host's models, as its loader hands them over; `known`: those seen so far;
//!   `model`: one of them; `files`: which files the host has open.
//! * `decision`: what comes of a wish for a model here.
//! * `contexts`: blocks of the host's contexts, to the model they belong to.
//! * `chain`: a backend that was to be loaded in our place.
//! * `say`: lines for people.

#![allow(clippy::disallowed_methods, reason = "a door: it reads variables and files")]

mod chain;
mod contexts;
mod decision;
mod enter;
mod entry;
mod files;
mod known;
mod model;
mod models;
mod say;
mod wishes;

pub use entry::ggml_backend_init;
