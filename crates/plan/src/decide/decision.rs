//! The decision: every setting of a run, what it should give, and why each was chosen. As JSON with
//! a version it is what `motley plan --json` writes and `motley run --plan` executes unchanged.

use motley_machine::Regime;
use motley_sched::{Costs, Rules};
use serde::{Deserialize, Serialize};

use super::asked::{Goal, Loading};
use crate::budget::{Budget, SessionShape};
use crate::cores::{NodeShare, ThreadSets};
use crate::device_use::DeviceUse;
use crate::kernels::ExpertKernels;
use crate::placement::Placement;
use crate::predict::Prediction;

/// Version of the format this crate writes and reads.
pub const FORMAT_VERSION: u32 = 6;

/// Everything a run executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Format version, [`FORMAT_VERSION`].
    #[serde(rename = "motley_plan")]
    pub version: u32,
    pub model: ModelId,
    /// The machine, for people.
    pub machine: String,
    /// Where the costs come from.
    pub costs: String,
    /// Whether they were measured.
    pub costs_measured: bool,
    pub goal: Goal,
    pub loading: Loading,
    /// Ceiling for everything in RAM; `None` where llama.cpp maps the file.
    pub memory_bytes: Option<u64>,
    /// How memory divides.
    pub budget: Budget,
    /// What each memory holds.
    pub placement: Placement,
    pub device_use: DeviceUse,
    /// The GPUs in use.
    pub devices: Vec<DeviceShare>,
    pub threads: ThreadSets,
    /// Memory nodes (NUMA) that divide the experts; none where there is only one, or experts are
    /// not laid out in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeShare>,
    /// KV cache, chunk (N7) and logits.
    pub session: SessionShape,
    /// Most tokens of one sequence, where the cache may be longer: what the model was trained for.
    /// `None` where a length of the cache was asked for.
    pub longest_tokens: Option<u32>,
    /// Who decides about experts.
    pub rules: Rules,
    /// What the rules decide with, where devices share the experts; measured or typical.
    pub expert_costs: Option<Costs>,
    /// How the CPU computes experts: layouts and ways (W2, W4).
    pub kernels: ExpertKernels,
    /// Weights in the file's order: equal to the last bit whatever the placement (M5).
    pub exact: bool,
    /// Experts per token in place of the model's own number; `None` where it uses that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts_used: Option<u32>,
    pub prefill: Prediction,
    pub decode: Prediction,
    pub why: Why,
    /// What was taken for granted.
    pub assumed: Vec<String>,
}

/// The model a decision is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelId {
    pub name: String,
    /// All its tensors.
    pub total_bytes: u64,
    /// Over all layers.
    pub experts: u32,
}

/// A GPU and what it gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceShare {
    pub name: String,
    /// Its part (0 to 1) of the dense layers.
    pub part: f64,
    /// Memory for experts; `None` takes what is left once dense weights and the KV cache are
    /// there, which no plan knows to the byte.
    pub expert_bytes: Option<u64>,
    pub stands_in: bool,
}

/// Why, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// Where weights are.
    pub loading: String,
    pub memory: String,
    pub devices: String,
    pub threads: String,
    /// Only where memory nodes divide the experts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    pub chunk: String,
    pub context: String,
    /// Empty in plans of before there was a choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kv: String,
    pub rules: String,
    pub exact: String,
    /// Only where experts are rearranged while they are computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<String>,
    /// What is computed otherwise than the model says; none where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approximate: Option<String>,
}

impl Decision {
    /// Slots of RAM for experts that are read from disk; `None` when none are.
    pub fn streamed_slots(&self) -> Option<u32> {
        let streams = self.loading == Loading::OnDemand && self.budget.experts > 0;
        streams.then(|| self.placement.ram_slots())
    }

    /// Where experts live.
    pub fn regime(&self) -> Regime {
        self.placement.regime
    }
}
