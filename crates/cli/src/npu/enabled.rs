//! Flags of a static-graph device, and giving it to an engine.

use super::{NpuFigures, NpuRow};
use crate::planned::read_profile;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use motley_engine::Engine;
use motley_engine::eval::tasks::read_text;
use motley_engine::npu::{
    NpuHandle, NpuOptions, NpuOverflow, Precision, Provider, ProviderConfig, even_profile,
    profile_of,
};
use std::path::PathBuf;

/// Tokens of a calibration text that are read.
const CALIBRATION_TOKENS: usize = 8192;

/// How a static-graph device is used.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Static-graph device")]
pub(crate) struct NpuArgs {
    /// Compute hot experts of prompts on static graphs; what happens past their capacity
    #[arg(long, value_enum, value_name = "OVERFLOW")]
    pub(crate) npu: Option<OverflowArg>,
    /// ONNX Runtime's library
    #[arg(long, value_name = "FILE", env = "ORT_DYLIB_PATH")]
    pub(crate) npu_library: Option<PathBuf>,
    /// Who compiles and runs graphs: cpu, openvino, coreml, qnn, vitisai
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) npu_provider: Provider,
    /// Part of the machine, in the provider's words
    #[arg(long, value_name = "DEVICE")]
    pub(crate) npu_device: Option<String>,
    /// Compute in half precision
    #[arg(long)]
    pub(crate) npu_half: bool,
    /// Routing profile the capacities come from (default: all experts alike)
    #[arg(long, value_name = "FILE")]
    pub(crate) npu_profile: Option<PathBuf>,
    /// Text the capacities come from, read before anything else
    #[arg(long, value_name = "FILE", conflicts_with = "npu_profile")]
    pub(crate) npu_calibrate: Option<PathBuf>,
    /// Rows given per row expected
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) npu_headroom: f64,
    /// Most experts in one graph
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) npu_group: usize,
    /// Folder for compiled graphs
    #[arg(long, value_name = "FOLDER")]
    pub(crate) npu_cache: Option<PathBuf>,
}

/// Values of `--npu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverflowArg {
    /// To the CPU: nothing is lost
    Spill,
    /// Dropped, what the router weighs least first
    Prune,
    /// One capacity for all experts, the busiest one's
    Pad,
}

impl NpuArgs {
    /// `--compare npu=…`: a policy, or `off`.
    pub(crate) fn set(&mut self, value: &str) -> Result<()> {
        self.npu = match (value, OverflowArg::from_str(value, true)) {
            ("off", _) => None,
            (_, Ok(overflow)) => Some(overflow),
            _ => bail!("write npu=spill, npu=prune, npu=pad or npu=off"),
        };
        Ok(())
    }
}

/// Gives `engine` the device, if one is wanted.
pub(crate) fn attach(
    engine: &mut Engine,
    args: &NpuArgs,
    chunk_tokens: u32,
) -> Result<Option<NpuFigures>> {
    let Some(overflow) = args.npu else { return Ok(None) };
    let profile = match (&args.npu_profile, &args.npu_calibrate) {
        (Some(path), _) => read_profile(path)?,
        (None, Some(path)) => {
            profile_of(engine, &read_text(path)?, CALIBRATION_TOKENS, chunk_tokens)?
        }
        (None, None) => even_profile(engine.spec()),
    };
    let options = NpuOptions {
        library: args.npu_library.clone(),
        provider: ProviderConfig {
            provider: args.npu_provider,
            device: args.npu_device.clone(),
            precision: if args.npu_half { Precision::F16 } else { Precision::F32 },
            threads: engine.threads() as usize,
            cache_dir: args.npu_cache.clone(),
        },
        cache: args.npu_cache.clone(),
        overflow: match overflow {
            OverflowArg::Spill => NpuOverflow::Spill,
            OverflowArg::Prune => NpuOverflow::Prune,
            OverflowArg::Pad => NpuOverflow::Pad,
        },
        headroom: args.npu_headroom,
        group_experts: args.npu_group,
        ..NpuOptions::new(profile, chunk_tokens)
    };
    let npu = engine.use_npu(options).context("--npu")?;
    Ok(Some(Box::new(move || rows(&npu))))
}

fn rows(npu: &NpuHandle) -> Vec<NpuRow> {
    let figures = npu.figures();
    let computed = figures.layers.iter().map(|(&layer, figures)| NpuRow {
        layer,
        device_share: figures.device_share(),
        spilled: figures.spilled,
        drop_rate: figures.drop_rate(),
        padding_rate: figures.padding_rate(),
        launches: figures.launches,
        refused: None,
    });
    let refused = figures.refused.iter().map(|(&layer, reason)| NpuRow {
        layer,
        device_share: 0.0,
        spilled: 0,
        drop_rate: 0.0,
        padding_rate: 0.0,
        launches: 0,
        refused: Some(reason.clone()),
    });
    computed.chain(refused).collect()
}
