//! A static-graph device beside the CPU: its flags, and giving it to an engine. Built
//! with feature `npu`; without it there are no flags and nothing happens.

#[cfg(not(feature = "npu"))]
mod disabled;
#[cfg(feature = "npu")]
mod enabled;

#[cfg(not(feature = "npu"))]
pub(crate) use disabled::{NpuArgs, attach};
#[cfg(feature = "npu")]
pub(crate) use enabled::{NpuArgs, attach};

use serde::Serialize;

/// What the device did in one layer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NpuRow {
    pub(crate) layer: u32,
    /// Pairs the device computed over all.
    pub(crate) device_share: f64,
    pub(crate) spilled: u64,
    /// Dropped pairs over all (N8).
    pub(crate) drop_rate: f64,
    /// Rows of zeros over all rows computed (N8).
    pub(crate) padding_rate: f64,
    pub(crate) launches: u64,
    /// Why the layer ran on the CPU, if it did.
    pub(crate) refused: Option<String>,
}

/// The figures so far, whenever asked.
pub(crate) type NpuFigures = Box<dyn Fn() -> Vec<NpuRow>>;
