//! What replay of this routing chose for one machine (M6): names as flags write them. What they mean
//! is judged elsewhere.

use serde::{Deserialize, Serialize};

/// How far a memory's share of the experts may be from the one a choice was made for.
const NEAR: f64 = 0.1;

/// Policies and prefetchers that were faster than the defaults on passes held out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenRules {
    /// What they were chosen for.
    pub arrangement: Arrangement,
    /// `blend`, or `ram=lfu,gpu=blend`.
    pub policy: String,
    /// In the same way.
    pub prefetch: String,
    /// Time of the defaults over theirs on the passes held out, less one.
    pub gain: f64,
    /// Decoded tokens held out.
    pub tokens: u64,
}

/// Which memory holds how much of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrangement {
    /// The machine's name.
    pub machine: String,
    /// Whether experts come from disk; else RAM has every one.
    pub from_disk: bool,
    /// Part of all experts (0 to 1) that stays in RAM.
    pub ram: f64,
    /// Part of all experts (0 to 1) that stays on devices.
    pub devices: f64,
}

impl Arrangement {
    /// Whether what was chosen for one holds for the other.
    pub fn is_like(&self, other: &Self) -> bool {
        let near = |one: f64, other: f64| (one - other).abs() <= NEAR;
        self.machine == other.machine
            && self.from_disk == other.from_disk
            && near(self.ram, other.ram)
            && near(self.devices, other.devices)
    }
}
