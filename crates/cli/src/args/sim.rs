//! What `motley sim` and `motley reproduce` take.

use crate::npu::LadderArgs;
use clap::{Args, ValueEnum};
use motley_sched::cache::PolicyChoice;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::strategy::StrategyChoice;
use motley_sched::{ByMemory, SkipCold};
use motley_sim::setup::{CacheSize, DEFAULT_PREDICTION};
use std::path::PathBuf;

/// `motley sim`.
#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// Ready machine by name, or a .toml file (a wrong name lists the ready ones)
    #[arg(long, default_value = "laptop-8gb-gpu", value_name = "NAME|FILE")]
    pub(crate) machine: String,
    /// Ready model by name, or LAYERSxEXPERTSxK:HIDDENxWIDTH (default: qwen3-30b-a3b, or
    /// the one a trace was recorded from)
    #[arg(long, value_name = "NAME|SHAPE", conflicts_with = "model")]
    pub(crate) model_shape: Option<String>,
    /// Take the shape from this GGUF file
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,
    /// Bits of a weight, where the shape does not come from a file
    #[arg(long, default_value_t = motley_sim::shape::DEFAULT_BITS)]
    pub(crate) bits: f64,
    /// Replay this recorded routing (several: only with --curves)
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Vec<PathBuf>,
    /// Seed for synthetic routing and wrong predictions
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u32,
    /// Run this recorded run again with its measured costs: the file `--stats` wrote beside
    /// the trace
    #[arg(long, value_name = "FILE.json", requires = "trace")]
    pub(crate) run: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) synthetic: SyntheticArgs,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) approximate: SimApproximate,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Other machines that compute experts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workers")]
pub(crate) struct HostArgs {
    /// Decode with so many workers beside the machine alone and beside whole layers on each machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16),
        conflicts_with_all = ["run", "choose", "faults", "cache", "skip_cold", "timeline", "svg", "curves"])]
    pub(crate) workers: Option<u16>,
    /// What every worker is, of which the CPU, RAM and disk count (default: the same machine)
    #[arg(long, value_name = "NAME|FILE", requires = "workers")]
    pub(crate) worker_machine: Option<String>,
    /// Rate of the cable between them in Gbit/s
    #[arg(long, value_name = "GBIT", default_value_t = 2.5, value_parser = cable, requires = "workers")]
    pub(crate) cable: f64,
    /// Round trip of a small question and its answer, encryption included, in microseconds
    #[arg(long, value_name = "US", default_value_t = 170.0, value_parser = round_trip, requires = "workers")]
    pub(crate) round_trip: f64,
}

/// Synthetic routing, by `--seed`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Synthetic routing (without --trace)")]
pub(crate) struct SyntheticArgs {
    /// Prompt tokens
    #[arg(long, default_value_t = 512, value_name = "TOKENS", conflicts_with = "trace")]
    pub(crate) prefill: u32,
    /// Decoded tokens
    #[arg(short = 'n', long, default_value_t = 256, conflicts_with = "trace")]
    pub(crate) tokens: u32,
    /// How uneven experts are: exponent of Zipf's law, 0 is even
    #[arg(long, default_value_t = 0.7, value_name = "X", value_parser = small, conflicts_with = "trace")]
    pub(crate) skew: f64,
    /// Share of experts kept from token to token on purpose
    #[arg(long, default_value_t = 0.2, value_name = "SHARE", value_parser = share, conflicts_with = "trace")]
    pub(crate) repeat: f64,
    /// Share of tokens that are like a recent one
    #[arg(long, default_value_t = 0.6, value_name = "SHARE", value_parser = share, conflicts_with = "trace")]
    pub(crate) recall: f64,
    /// Share of choices that follow the kind of token through all layers
    #[arg(long, default_value_t = 0.9, value_name = "SHARE", value_parser = share, conflicts_with = "trace")]
    pub(crate) correlation: f64,
}

/// Who decides.
#[derive(Debug, Args)]
#[command(next_help_heading = "Judgement")]
pub(crate) struct ChoiceArgs {
    /// Who computes: on-demand, cpu-on-miss, layer-split, pinned, monde, timelines, balanced
    /// (default: by the machine and the size of the model)
    #[arg(long)]
    pub(crate) strategy: Option<StrategyChoice>,
    /// What stays in the cache: lru, lfu, lfru, mrs, blend; ram=lru,gpu=blend is one for each
    /// memory (default: as `motley run`)
    #[arg(long, value_name = "NAMES")]
    pub(crate) policy: Option<ByMemory<PolicyChoice>>,
    /// What is fetched early: none, previous-token, next-layer, next-layer-decode,
    /// next-layers-decode (three of them), prefill-counted, refill, next-layer+refill, whole-layer;
    /// by memory as --policy (default: as `motley run`)
    #[arg(long, value_name = "NAMES")]
    pub(crate) prefetch: Option<ByMemory<PrefetchChoice>>,
    /// Try policies and prefetchers, each memory's apart, on the first 70 % of the decoded tokens;
    /// keep the fastest if it is faster than the default on the others too, by 1 %
    #[arg(long, conflicts_with_all = ["policy", "prefetch", "timeline", "svg", "curves", "run", "faults"])]
    pub(crate) choose: bool,
    /// Experts kept in the fast memory: 25% of each layer, or 1500 in all (default: what fits)
    #[arg(long, value_name = "PERCENT|SLOTS", value_parser = cache_size)]
    pub(crate) cache: Option<CacheSize>,
    /// Chance that an expert of the next layer is predicted
    #[arg(long, default_value_t = DEFAULT_PREDICTION, value_name = "SHARE", value_parser = share)]
    pub(crate) prediction: f64,
    /// Let loads fail, the link slow down and units stall, by this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) faults: Option<u64>,
}

/// What a run would leave out; how much worse its answers were, no simulation can tell.
#[derive(Debug, Args)]
#[command(next_help_heading = "Approximations")]
pub(crate) struct SimApproximate {
    /// Experts per token in place of the model's own number: of recorded routing the strongest
    #[arg(long, value_name = "N", conflicts_with = "curves")]
    pub(crate) experts: Option<u16>,
    /// Leave out experts that would have to be read from disk where their weight is below this part
    /// of an even share of the token's, e.g. 0.5
    #[arg(long, value_name = "PART", conflicts_with_all = ["curves", "run", "choose"])]
    pub(crate) skip_cold: Option<SkipCold>,
}

/// What is written beside the table.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct OutputArgs {
    /// Write what ran when, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE.json")]
    pub(crate) timeline: Option<PathBuf>,
    /// Draw one layer of one decoded token
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,
    /// The layer to draw (default: the middle one)
    #[arg(long, requires = "svg")]
    pub(crate) layer: Option<u16>,
    /// Instead of simulating, compare all cache policies at all sizes; write report and curves
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["timeline", "svg"])]
    pub(crate) curves: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1.0)
}

fn small(text: &str) -> Result<f64, String> {
    between(text, 0.0, 5.0)
}

fn cable(text: &str) -> Result<f64, String> {
    between(text, 0.001, 1000.0)
}

fn round_trip(text: &str) -> Result<f64, String> {
    between(text, 1.0, 1e6)
}

fn between(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let fits = (least..=most).contains(&value);
    if fits { Ok(value) } else { Err(format!("not in {least} to {most}")) }
}

fn cache_size(text: &str) -> Result<CacheSize, String> {
    let help = || "neither a percentage such as 25% nor a number of experts".to_owned();
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent: f64 = percent.trim().parse().map_err(|_| help())?;
            let fits = (0.0..=100.0).contains(&percent);
            if fits {
                Ok(CacheSize::Share(percent / 100.0))
            } else {
                Err("not in 0% to 100%".into())
            }
        }
        None => text.parse().map(CacheSize::Slots).map_err(|_| help()),
    }
}

/// `motley reproduce`.
#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// Whose results
    #[arg(value_enum, default_value_t = SourceArg::All)]
    pub(crate) source: SourceArg,
    /// Folder for documents and pictures
    #[arg(long, default_value = "docs/reproduction", value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Print the figures; neither sweep assumptions nor write files
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// For `machines` and `tiers`: decode these recorded traces as well
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) trace: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) ladder: LadderArgs,
    /// Drive the engine's own threads against devices that sleep, beside the simulator
    /// (hybrimoe only, some minutes)
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "full")]
    pub(crate) engine: Option<EngineRuns>,
}

/// How much of a source is driven through the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineRuns {
    /// All models and cache sizes
    Full,
    /// One model with a quarter of its experts cached
    Quick,
}

/// Values of `reproduce`'s argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceArg {
    /// Hybrid CPU and GPU: timelines, prefetching, score-aware cache
    Hybrimoe,
    /// One GPU and several near-data units
    GpuNdp,
    /// Energy-centred core selection on seven phones
    Aecs,
    /// Prefill on a static-graph device: tiers, groups, ladder
    Npumoe,
    /// Three machines, three models: ours beside llama.cpp's and kTransformers' policies
    Machines,
    /// Disk, RAM and GPUs at once beside the best two memories (some minutes)
    Tiers,
    /// A head and its workers beside its disk and beside whole layers (some minutes)
    Hosts,
    /// All of them
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_percentage_or_a_count() {
        assert_eq!(cache_size("25%"), Ok(CacheSize::Share(0.25)));
        assert_eq!(cache_size("1500"), Ok(CacheSize::Slots(1500)));
        for wrong in ["", "%", "-1%", "101%", "many", "-3", "2.5"] {
            assert!(cache_size(wrong).is_err(), "{wrong}");
        }
    }
}
