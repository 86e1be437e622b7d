//! Flags of a static-graph device, and giving it to an engine.

use super::{NpuFigures, NpuRow};
use crate::args::parse_size;
use crate::known::read_profile;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use motley_engine::Engine;
use motley_engine::blocks::npu::{
    LayerFigures, MAX_CACHE_BYTES, NpuChoice, NpuHandle, NpuOptions, NpuOverflow, Precision,
    Provider, ProviderConfig, even_profile, profile_of,
};
use motley_engine::eval::tasks::read_text;
use std::path::PathBuf;
use std::time::Duration;

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
    /// Numbers graphs compute with
    #[arg(long, value_enum, value_name = "PRECISION", default_value_t = PrecisionArg::F32)]
    pub(crate) npu_precision: PrecisionArg,
    /// Routing profile the capacities come from (default: all experts alike)
    #[arg(long, value_name = "FILE")]
    pub(crate) npu_profile: Option<PathBuf>,
    /// Text the capacities come from, read before anything else
    #[arg(long, value_name = "FILE", conflicts_with = "npu_profile")]
    pub(crate) npu_calibrate: Option<PathBuf>,
    /// Rows given per row expected
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) npu_headroom: f64,
    /// CPU threads the provider may use (default: as many as compute)
    #[arg(long, value_name = "N")]
    pub(crate) npu_threads: Option<usize>,
    /// Most memory for graphs (default: an eighth of the machine's, or a quarter of --memory)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) npu_memory: Option<u64>,
    /// Graphs launched at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) npu_launches: usize,
    /// Most experts in one graph
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) npu_group: usize,
    /// Folder for compiled graphs
    #[arg(long, value_name = "FOLDER", env = "MOTLEY_NPU_CACHE")]
    pub(crate) npu_cache: Option<PathBuf>,
    /// Most bytes in it; the graphs used longest ago go first
    #[arg(long, value_name = "SIZE", value_parser = parse_size, env = "MOTLEY_NPU_CACHE_LIMIT",
        default_value_t = MAX_CACHE_BYTES)]
    pub(crate) npu_cache_limit: u64,
    /// Added to every launch of a graph, to stand for a device whose driver costs that
    #[arg(long, value_name = "US", default_value_t = 0, hide = true)]
    pub(crate) npu_launch_us: u64,
}

/// Values of `--npu-precision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionArg {
    /// As the reference
    F32,
    /// Half precision: what NPUs are made for
    F16,
    /// Four-bit weights as they are in the file, for experts in Q4_0
    Q4,
}

impl From<PrecisionArg> for Precision {
    fn from(precision: PrecisionArg) -> Self {
        match precision {
            PrecisionArg::F32 => Self::F32,
            PrecisionArg::F16 => Self::F16,
            PrecisionArg::Q4 => Self::Q4,
        }
    }
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

    /// `--compare npu-headroom=…`.
    pub(crate) fn set_headroom(&mut self, value: &str) -> Result<()> {
        self.npu_headroom = value.parse().with_context(|| format!("`{value}` is not a number"))?;
        Ok(())
    }
}

/// What the device may take, and by what it is chosen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) choice: NpuChoice,
}

/// Gives `engine` the device, if one is wanted. `share`: what it may take; without it every group of
/// experts goes there.
pub(crate) fn attach(
    engine: &mut Engine,
    args: &NpuArgs,
    chunk_tokens: u32,
    share: Option<Share>,
) -> Result<Option<NpuFigures>> {
    let Some(overflow) = args.npu else { return Ok(None) };
    let profile = match (&args.npu_profile, &args.npu_calibrate) {
        (Some(path), _) => read_profile(path)?,
        (None, Some(path)) => {
            profile_of(engine, &read_text(path)?, CALIBRATION_TOKENS, chunk_tokens)?
        }
        (None, None) => even_profile(engine.spec()),
    };
    let share = share.unwrap_or_default();
    let options = NpuOptions {
        library: args.npu_library.clone(),
        provider: ProviderConfig {
            provider: args.npu_provider,
            device: args.npu_device.clone(),
            precision: args.npu_precision.into(),
            threads: args.npu_threads.unwrap_or(engine.threads() as usize),
            cache_dir: None,
        },
        cache: args.npu_cache.clone(),
        cache_bytes: args.npu_cache_limit,
        launch_cost: Duration::from_micros(args.npu_launch_us),
        overflow: match overflow {
            OverflowArg::Spill => NpuOverflow::Spill,
            OverflowArg::Prune => NpuOverflow::Prune,
            OverflowArg::Pad => NpuOverflow::Pad,
        },
        headroom: args.npu_headroom,
        group_experts: args.npu_group,
        choice: share.choice,
        memory_bytes: share.memory_bytes.or(args.npu_memory).unwrap_or(u64::MAX),
        launches: args.npu_launches,
        ..NpuOptions::new(profile, chunk_tokens)
    };
    let npu = engine.use_npu(options).context("--npu")?;
    Ok(Some(Box::new(move || rows(&npu))))
}

fn rows(npu: &NpuHandle) -> Vec<NpuRow> {
    let figures = npu.take_figures();
    let computed = figures.layers.iter().map(|(&layer, figures)| row(Some(layer), figures));
    let refused = figures.refused.iter().map(|(&layer, reason)| NpuRow {
        refused: Some(reason.clone()),
        ..row(Some(layer), &LayerFigures::default())
    });
    computed.chain(refused).chain([row(None, &figures.total())]).collect()
}

fn row(layer: Option<u32>, figures: &LayerFigures) -> NpuRow {
    NpuRow {
        layer,
        device_share: figures.device_share(),
        spilled: figures.spilled,
        drop_rate: figures.drop_rate(),
        padding_rate: figures.padding_rate(),
        launches: figures.launches,
        refused: None,
    }
}
