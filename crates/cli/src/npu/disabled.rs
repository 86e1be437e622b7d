//! Built without static-graph devices: no flags, no device.

use super::NpuFigures;
use anyhow::{Result, bail};
use clap::Args;
use motley_engine::Engine;

/// No flags.
#[derive(Debug, Clone, Args)]
pub(crate) struct NpuArgs {}

impl NpuArgs {
    /// `--compare npu=…`.
    pub(crate) fn set(&mut self, _: &str) -> Result<()> {
        bail!("this build has no static-graph device; build with --features npu")
    }
}

/// Nothing to give.
pub(crate) fn attach(_: &mut Engine, _: &NpuArgs, _: u32) -> Result<Option<NpuFigures>> {
    Ok(None)
}
