//! How a static-graph device is used, and what its sessions share.

use super::figures::NpuFigures;
use crate::blocks::gates::Gates;
use motley_cost::ComputeCost;
use motley_model::{ModelSpec, OpenedFile};
use motley_npu::cache::MAX_CACHE_BYTES;
use motley_npu::{GraphCache, GraphLimits, ProviderConfig, Runtime};
use motley_plan::tiers::GroupCosts;
use motley_profile::Profile;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to tokens past an expert's capacity (N3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NpuOverflow {
    /// They go to the CPU: nothing is lost.
    #[default]
    Spill,
    /// Those the router weighs least are dropped.
    Prune,
    /// One capacity for all experts, the busiest one's; what is above spills.
    Pad,
}

/// What decides which groups go on the device (N5).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum NpuChoice {
    /// All of them.
    #[default]
    Every,
    /// Those that are faster there by these costs.
    Known(GroupCosts),
    /// The same, with graphs measured as they are compiled; and of each block only what ends
    /// earlier for it.
    Measured {
        /// One expert on the CPU.
        cpu: ComputeCost,
        /// Reading one from disk, where it is not in memory.
        read_us: f64,
    },
}

/// How the device is used.
#[derive(Debug, Clone)]
pub struct NpuOptions {
    /// ONNX Runtime's library; `None` asks `ORT_DYLIB_PATH`.
    pub library: Option<PathBuf>,
    /// Who compiles and runs graphs.
    pub provider: ProviderConfig,
    /// What the device allows.
    pub limits: GraphLimits,
    /// Where compiled graphs are kept; `None` compiles anew every time.
    pub cache: Option<PathBuf>,
    /// Most bytes kept there; the graphs used longest ago go first.
    pub cache_bytes: u64,
    pub overflow: NpuOverflow,
    /// Rows given per row expected; below 1 forces overflow.
    pub headroom: f64,
    /// Most experts in one graph.
    pub group_experts: usize,
    pub choice: NpuChoice,
    /// Most bytes of weights in graphs; every layer has its part.
    pub memory_bytes: u64,
    /// Graphs that are launched at once.
    pub launches: usize,
    /// Added to every launch: what a device's driver costs and a stand-in's does not.
    pub launch_cost: Duration,
    /// Tokens of a prefill chunk the capacities are for; blocks of less than a quarter
    /// of it, decode above all, stay on the CPU.
    pub chunk_tokens: u32,
    /// Expected loads.
    pub profile: Profile,
}

impl NpuOptions {
    /// Spilling, in groups of up to 16, on ONNX Runtime's own CPU kernels.
    pub fn new(profile: Profile, chunk_tokens: u32) -> Self {
        Self {
            library: None,
            provider: ProviderConfig::cpu(1),
            limits: GraphLimits::default(),
            cache: None,
            cache_bytes: MAX_CACHE_BYTES,
            overflow: NpuOverflow::default(),
            headroom: 1.0,
            group_experts: 16,
            choice: NpuChoice::default(),
            memory_bytes: u64::MAX,
            launches: 4,
            launch_cost: Duration::ZERO,
            chunk_tokens,
            profile,
        }
    }
}

/// What all sessions of an engine share.
pub(super) struct Shared {
    pub(super) spec: Arc<ModelSpec>,
    pub(super) files: Vec<OpenedFile>,
    pub(super) runtime: Runtime,
    pub(super) cache: Option<GraphCache>,
    /// Router matrices, for pruning only.
    pub(super) gates: Option<Gates>,
    pub(super) options: NpuOptions,
    pub(super) figures: Mutex<NpuFigures>,
}
