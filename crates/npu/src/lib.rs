//! `motley-npu`: routed experts as static graphs on a device that runs nothing else,
//! through ONNX Runtime. Builds, compiles, keeps and runs graphs; which experts are in
//! them and how many rows they get is decided elsewhere (`motley_plan::tiers`).
//!
//! Modules, in reading order:
//! * [`spec`]: the shape of a grouped graph `[G·C, H]` (N4) and what it refuses.
//! * [`weights`]: one expert's matrices as they go into a graph.
//! * [`rows`]: gather, pad with zeros, scatter of valid rows only (W3).
//! * [`provider`]: CoreML, QNN, OpenVINO, VitisAI, CPU: configuration to options.
//! * [`runtime`]: the library, found and loaded while the program runs.
//! * `build`: a spec and weights as an ONNX graph.
//! * [`graph`]: a compiled graph, run.
//! * [`cache`]: compiled graphs on disk, by content, within a limit.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a hand: it may touch the world")]

mod build;
pub mod cache;
pub mod graph;
pub mod provider;
pub mod rows;
pub mod runtime;
pub mod spec;
pub mod weights;

pub use cache::{GraphCache, GraphKey};
pub use graph::{Graph, GraphError};
pub use provider::{Provider, ProviderConfig};
pub use rows::GroupRows;
pub use runtime::{Runtime, RuntimeError};
pub use spec::{Activation, ExpertShape, GraphLimits, GraphSpec, Precision, Refused};
pub use weights::{Biases, ExpertWeights, Matrix};
