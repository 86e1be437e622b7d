//! Built without static-graph devices: no flags, no device.

use super::{LadderOutcome, NpuFigures, Prompts};
use crate::args::Global;
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

    /// `--compare npu-headroom=…`.
    pub(crate) fn set_headroom(&mut self, value: &str) -> Result<()> {
        self.set(value)
    }
}

/// No flags.
#[derive(Debug, Clone, Args)]
pub(crate) struct LadderArgs {}

/// Nothing to run it on.
pub(crate) fn ladder(_: &Global, _: &LadderArgs) -> Result<Option<LadderOutcome>> {
    Ok(None)
}

/// No flags.
#[derive(Debug, Clone, Args)]
pub(crate) struct PairsArgs {}

/// There is nothing to measure against.
pub(crate) fn bench(_: &Global, _: &Prompts<'_>, _: &PairsArgs) -> Result<bool> {
    Ok(false)
}

/// Nothing to give.
pub(crate) fn attach(_: &mut Engine, _: &NpuArgs, _: u32) -> Result<Option<NpuFigures>> {
    Ok(None)
}
