//! Flags a decision is made from: what a run may use, and what it is to do. As typed; `decide` in
//! `motley-plan` says what comes of them.

use super::approximate::Approximate;
use clap::{Args, ValueEnum};
use motley_engine::{PolicyChoice, PrefetchChoice};
use motley_model::KvType;
use motley_plan::decide::asked::{DEFAULT_CONTEXT_TOKENS, DEFAULT_PROMPT_TOKENS};
use motley_plan::decide::parse::{parse_devices, parse_size};
use motley_plan::{Asked, DevicesAsked, Loading, Outputs};
use motley_sched::ByMemory;
use std::path::PathBuf;

/// A decision to be made here and now, or one that was written down.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) wishes: Wishes,
    #[command(flatten)]
    pub(crate) approximate: Approximate,
    /// Execute a plan (`motley plan MODEL --json > FILE`) in place of the flags above
    #[arg(long, value_name = "FILE", help_heading = "Loading", conflicts_with_all = [
        "threads", "memory", "devices", "loading", "policy", "prefetch", "exact", "context", "kv",
        "chunk", "experts", "skip_cold",
    ])]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

impl LoadArgs {
    /// As `decide` takes them, for a session with these outputs.
    pub(crate) fn asked(&self, outputs: Outputs) -> Asked {
        self.approximate.beside(self.wishes.asked(outputs))
    }
}

/// Whether a file not seen before is tried first.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TrustArgs {
    /// Load a file not seen before at once; by default a process of its own tries it first, so
    /// that one which ends the engine gives a message
    #[arg(long, help_heading = "Loading")]
    pub(crate) trust_file: bool,
}

/// What is asked for; what is not is chosen.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Loading")]
pub(crate) struct Wishes {
    /// Threads to compute with (default: as tuned, else every core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) threads: Option<u32>,
    /// Ceiling for everything, e.g. 4G: experts that do not fit stay on disk (default:
    /// what the machine can give)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Devices that share the experts with the CPU: auto (all GPUs), cpu (none), or names such as
    /// vulkan0,vulkan1; vulkan0=4G takes no more of its memory
    #[arg(long, value_name = "NAMES", default_value = "auto", value_parser = parse_devices)]
    pub(crate) devices: DevicesAsked,
    /// How weights come into memory (default: mapped when everything fits, else on demand)
    #[arg(long, value_enum)]
    pub(crate) loading: Option<LoadingArg>,
    /// Which experts stay when not all can: lru, lfu, lfru, mrs, blend; ram=lru,gpu=blend is one
    /// for each memory (default: as replay chose, else blend)
    #[arg(long, value_name = "NAMES")]
    pub(crate) policy: Option<ByMemory<PolicyChoice>>,
    /// What is brought before it is asked for, into idle time: none, previous-token, next-layer,
    /// next-layer-decode, next-layers-decode (three of them), prefill-counted, refill,
    /// next-layer+refill, whole-layer; by memory as --policy (default: as replay chose, else
    /// next-layer-decode from disk, whole-layer to a GPU)
    #[arg(long, value_name = "NAMES")]
    pub(crate) prefetch: Option<ByMemory<PrefetchChoice>>,
    /// Keep weights in the file's own order, on the CPU: slower, and equal to the last bit
    /// whatever the placement
    #[arg(long)]
    pub(crate) exact: bool,
    /// KV cache length in tokens (default: as long as nothing else gets slower for it, at least
    /// 4096)
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) context: Option<u32>,
    /// What keys and values are kept in: f16; q8_0 for nearly twice the context in the same memory,
    /// q4_0 for more than three times, with a loss; auto takes q8_0 where f16 would not fit, or
    /// would make decode beyond RAM 5 % slower
    #[arg(long, value_enum, default_value_t = KvArg::Auto)]
    pub(crate) kv: KvArg,
    /// Largest prefill chunk in tokens (default: 512, or what a calibrated machine is fastest with:
    /// beyond RAM up to the whole prompt of `run`, so that experts are read once)
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub(crate) chunk: Option<u32>,
    /// Tokens of the prompt, about, where it is known before the model is loaded.
    #[arg(skip)]
    pub(crate) prompt: Option<u32>,
}

impl Wishes {
    /// The first flag that was given of those that need a model to run.
    pub(crate) fn needs_a_run(&self) -> Option<&'static str> {
        let given = [
            ("--memory", self.memory.is_some()),
            ("--devices", self.devices != DevicesAsked::Auto),
            ("--loading", self.loading.is_some()),
            ("--policy", self.policy.is_some()),
            ("--prefetch", self.prefetch.is_some()),
            ("--exact", self.exact),
            ("--context", self.context.is_some()),
            ("--kv", self.kv != KvArg::Auto),
            ("--chunk", self.chunk.is_some()),
        ];
        given.into_iter().find(|(_, is)| *is).map(|(flag, _)| flag)
    }

    /// Makes the context what was given, else the default, and in any case room for `tokens`.
    pub(crate) fn at_least(&mut self, tokens: u32) {
        self.context = Some(self.context.unwrap_or(DEFAULT_CONTEXT_TOKENS).max(tokens));
    }

    /// The prompt that speeds are predicted for: a short one is the first of a conversation.
    fn prompt_tokens(&self) -> u32 {
        let prompt = self.prompt.unwrap_or(0).max(DEFAULT_PROMPT_TOKENS);
        prompt.min(self.context.unwrap_or(u32::MAX))
    }

    /// As `decide` takes them, for a session with these outputs.
    pub(crate) fn asked(&self, outputs: Outputs) -> Asked {
        Asked {
            loading: self.loading.map(Loading::from),
            memory_bytes: self.memory,
            devices: self.devices.clone(),
            threads: self.threads,
            context_tokens: self.context,
            kv: self.kv.into(),
            chunk_tokens: self.chunk,
            outputs,
            policy: self.policy,
            prefetch: self.prefetch,
            exact: self.exact,
            prompt_tokens: self.prompt_tokens(),
            ..Asked::default()
        }
    }
}

/// Values of `--loading`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadingArg {
    /// Map the file: everything is in memory as far as the system keeps it
    Mapped,
    /// Read dense weights now, an expert when a token first needs it
    OnDemand,
}

impl From<LoadingArg> for Loading {
    fn from(loading: LoadingArg) -> Self {
        match loading {
            LoadingArg::Mapped => Self::Mapped,
            LoadingArg::OnDemand => Self::OnDemand,
        }
    }
}

/// Values of `--kv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KvArg {
    /// f16, or q8_0 where it clearly gains; f16 under --exact
    Auto,
    /// 16 bits
    F16,
    /// 8 bits and a scale for every 32
    #[value(name = "q8_0")]
    Q8,
    /// 4 bits and a scale for every 32
    #[value(name = "q4_0")]
    Q4,
}

impl From<KvArg> for Option<KvType> {
    fn from(kv: KvArg) -> Self {
        match kv {
            KvArg::Auto => None,
            KvArg::F16 => Some(KvType::F16),
            KvArg::Q8 => Some(KvType::Q8_0),
            KvArg::Q4 => Some(KvType::Q4_0),
        }
    }
}
