//! Blocks computed with ggml's own kernels on the CPU, and what other units need to compute
//! them: clones of their operations, their formula, their weights as floats. Reaches ggml
//! through [`crate::api`] only.
//!
//! Modules, in reading order:
//! * `unit`: the CPU as a unit; `outcome`: how a computation ended.
//! * `subset`: a block computed from arena slots, whole or in parts; `clone` copies its
//!   operations for packed rows, `packed` runs them here.
//! * `blocks`: a block computed expert by expert.
//! * `project`: a small matrix times the hidden rows, for router scores.
//! * `between`: a block's formula, for units that are not ggml; `dequant`: its weights.
//! * `stream`: ggml's backends, `graph` and `tensors`: its graphs, tensors and memory, as
//!   owned values.
//! * `threadpool`: the threads of the CPU backend; `thread_probe`: whether they can be had;
//!   [`cpu`]: its registry and features; `levels`: what the processor offers.
//! * `devices`: everything ggml can compute on.

pub(crate) mod between;
pub(crate) mod blocks;
pub(crate) mod clone;
pub mod cpu;
pub(crate) mod dequant;
pub(crate) mod devices;
pub(crate) mod graph;
mod levels;
pub(crate) mod outcome;
pub(crate) mod packed;
pub(crate) mod project;
pub(crate) mod stream;
pub(crate) mod subset;
pub(crate) mod tensors;
mod thread_probe;
pub(crate) mod threadpool;
pub(crate) mod unit;

pub use between::{Formula, Gated, NoFormula};
pub use blocks::{BlockWork, Cut, Way};
pub use clone::CloneError;
pub use dequant::{DequantError, dequantise};
pub use devices::{DeviceInfo, DeviceType, devices};
pub use outcome::ComputeOutcome;
pub use project::{ProjectError, Rows};
pub use subset::SubsetError;
pub use threadpool::{Threadpool, ThreadpoolOptions};
pub use unit::CpuUnit;
