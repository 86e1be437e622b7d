//! Built without static-graph devices: no flags, no device.

use super::{LadderOutcome, NpuFigures, Prompts};
use crate::args::{Global, LoadArgs};
use crate::known::Known;
use crate::load::decision;
use anyhow::{Result, bail};
use clap::Args;
use motley_engine::Engine;
use motley_plan::{Decision, Outputs};
use std::path::PathBuf;

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

    /// No library.
    pub(crate) fn load_library(&self) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// There is none.
    pub(crate) fn is_used(&self) -> bool {
        false
    }

    /// Nothing is written.
    pub(crate) fn written(&self) -> Option<PathBuf> {
        None
    }
}

/// No device takes anything.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share;

/// The decision of these flags.
pub(crate) fn decide(
    known: &Known,
    load: &LoadArgs,
    outputs: Outputs,
    _: &NpuArgs,
) -> Result<(Decision, Share)> {
    Ok((decision(known, load, outputs)?, Share))
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

/// Nothing to say.
pub(crate) fn announce(_: &NpuArgs, _: &Share) {}

/// Nothing to give.
pub(crate) fn attach(
    _: &mut Engine,
    _: &NpuArgs,
    _: u32,
    _: Option<Share>,
) -> Result<Option<NpuFigures>> {
    Ok(None)
}
