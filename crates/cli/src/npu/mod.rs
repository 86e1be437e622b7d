//! A static-graph device beside the other units: its flags, giving it to an engine (`enabled`,
//! `beside`), and measuring it (`pairs`, `ladder`). Built with feature `npu`; without it there are no flags and nothing
//! happens.

#[cfg(feature = "npu")]
mod beside;
#[cfg(not(feature = "npu"))]
mod disabled;
#[cfg(feature = "npu")]
mod enabled;
#[cfg(feature = "npu")]
mod ladder;
#[cfg(feature = "npu")]
mod pairs;

#[cfg(feature = "npu")]
pub(crate) use beside::{announce, decide};
#[cfg(not(feature = "npu"))]
pub(crate) use disabled::{
    LadderArgs, NpuArgs, PairsArgs, Share, announce, attach, bench, decide, ladder,
};
#[cfg(feature = "npu")]
pub(crate) use enabled::{NpuArgs, Share, attach};
#[cfg(feature = "npu")]
pub(crate) use ladder::{LadderArgs, ladder};
#[cfg(feature = "npu")]
pub(crate) use pairs::{PairsArgs, bench};

use crate::args::LoadArgs;
use serde::Serialize;
use std::path::Path;

/// Prompts that are measured with and without the device.
#[cfg_attr(not(feature = "npu"), allow(dead_code, reason = "there is no device to measure"))]
pub(crate) struct Prompts<'a> {
    pub(crate) model: &'a Path,
    pub(crate) load: &'a LoadArgs,
    /// Tokens of each.
    pub(crate) prefill: usize,
    pub(crate) pairs: u32,
}

/// What the device did in one layer, or in all.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NpuRow {
    /// `None`: all layers together.
    pub(crate) layer: Option<u32>,
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

/// Something measured, for programs and for people.
pub(crate) struct LadderOutcome {
    pub(crate) json: serde_json::Value,
    pub(crate) page: String,
}

/// The figures since the last time they were asked for: layers, then all of them.
pub(crate) type NpuFigures = Box<dyn Fn() -> Vec<NpuRow>>;
