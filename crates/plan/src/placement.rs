//! What each memory holds: the result of placing a model, in bytes and slots. Data; `decide`
//! fills it in, `predict` says how fast it is.

use motley_machine::Regime;
use serde::{Deserialize, Serialize};

/// What one memory holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holding {
    /// The device whose memory it is.
    pub device: String,
    /// What may be used of it.
    pub room_bytes: u64,
    /// Dense weights and shared experts.
    pub dense_bytes: u64,
    pub kv_bytes: u64,
    /// Buffers and the process.
    pub other_bytes: u64,
    pub expert_slots: u32,
    /// Bytes of those slots.
    pub expert_bytes: u64,
}

impl Holding {
    /// Everything in this memory.
    pub fn bytes(&self) -> u64 {
        let parts = [self.dense_bytes, self.kv_bytes, self.other_bytes, self.expert_bytes];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// A placement of a whole model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    pub regime: Regime,
    /// Whether dense layers are computed by a GPU.
    pub dense_on_gpu: bool,
    /// GPUs with memory of their own, then RAM.
    pub holdings: Vec<Holding>,
    /// Experts of the model.
    pub experts: u32,
}

impl Placement {
    /// Slots in RAM.
    pub fn ram_slots(&self) -> u32 {
        self.holdings.last().map_or(0, |ram| ram.expert_slots)
    }

    /// Slots on GPUs with memory of their own.
    pub fn gpu_slots(&self) -> u32 {
        let gpus = self.holdings.len().saturating_sub(1);
        self.holdings[..gpus].iter().map(|gpu| gpu.expert_slots).sum()
    }

    /// Whether experts can be in two memories that compute.
    pub fn has_gpu_memory(&self) -> bool {
        self.holdings.len() > 1
    }

    /// Part of all experts (0 to 1) that stays in RAM or on a GPU.
    pub fn held(&self) -> f64 {
        let slots = f64::from(self.ram_slots()) + f64::from(self.gpu_slots());
        if self.experts == 0 { 1.0 } else { (slots / f64::from(self.experts)).min(1.0) }
    }
}
