//! Published results beside ours: for every figure the paper's value, ours, the difference, and
//! what had to be assumed. Returns documents; writes no files and measures nothing.
//!
//! Modules in reading order:
//! - [`source`]: the sources by name, with their figures and pages.
//! - [`document`]: figures, tables and pictures of one reproduction.
//! - [`bars`]: grouped bars as SVG.
//! - [`compared`]: what comparisons of systems share.
//! - [`gpu_ndp`]: one GPU and several near-data units (G6).
//! - [`hybrimoe`]: CPU and GPU with timelines, prefetch and score-aware cache (H5).
//! - [`aecs`]: energy-centred core selection on seven phones (A7).
//! - [`npumoe`]: prefill on a static-graph device, plan and costs (N9).
//! - [`machines`]: three machines and three models, beside two other systems' policies.
//! - [`tiers`]: disk, RAM and GPUs at once, beside the best of two memories.
//! - [`hosts`]: a head and its workers, beside the head alone and whole layers on each host.
//! - [`error`]: why a reproduction could not be made.

#![forbid(unsafe_code)]

pub mod aecs;
pub mod bars;
pub mod compared;
pub mod document;
pub mod error;
pub mod gpu_ndp;
pub mod hosts;
pub mod hybrimoe;
pub mod machines;
pub mod npumoe;
pub mod source;
pub mod tiers;

pub use document::{Assumed, Document, Figure, Picture};
pub use error::ReproduceError;
pub use source::Source;
