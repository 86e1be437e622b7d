//! The seam: a ggml device that claims the routed-expert blocks of llama.cpp's graphs and
//! hands each to an executor. Reaches ggml through [`crate::api`] only; computes nothing and
//! decides nothing.
//!
//! Modules, in reading order:
//! * `block`: the routed-expert block of one layer as a typed value; `arena_weight`: a matrix
//!   of it in slots.
//! * `claim`: which operations of a graph belong to a block.
//! * `executor`: who runs blocks; `link`: what an executor's context knows of them.
//! * `runner`: receives blocks and hands them over; `backend`: what a linked ggml calls.
//! * `device`: what is registered with ggml; `accelerator`: what its devices have in common.
//! * `reserve`: expert weights as address space without bytes; `shelf`: their device, met by
//!   the loader only.
//! * `zeros`: all weights as zeros nobody wrote.
//! * `mapped`: weights where they lie in mapped files; `bus`: pages that such a file has lost.
//! * `runtime`: proof that all this is in place.

pub(crate) mod accelerator;
pub(crate) mod arena_weight;
pub(crate) mod backend;
pub(crate) mod block;
mod bus;
pub(crate) mod claim;
pub(crate) mod device;
pub(crate) mod executor;
pub(crate) mod link;
pub(crate) mod mapped;
pub(crate) mod matrix;
pub(crate) mod reserve;
pub(crate) mod runner;
pub(crate) mod runtime;
mod shelf;
pub(crate) mod zeros;

pub use block::{ExpertBlock, NotABlock};
pub use claim::Claims;
pub use executor::{BlockError, BlockExecutor};
pub use link::SeamCounts;
pub use matrix::ExpertMatrix;
pub use runtime::{Runtime, Seam};
