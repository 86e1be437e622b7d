//! What the device did, layer by layer (N8). Sums only.

use motley_plan::tiers::Used;
use serde::Serialize;
use std::collections::BTreeMap;

/// Figures of all sessions of an engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NpuFigures {
    pub layers: BTreeMap<u32, LayerFigures>,
    /// Layers that run on the CPU, and why.
    pub refused: BTreeMap<u32, String>,
}

/// Figures of one layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LayerFigures {
    /// Blocks the device had a part in.
    pub blocks: u64,
    /// (Token, expert) pairs in them.
    pub pairs: u64,
    /// Pairs computed on the device.
    pub device: u64,
    /// Pairs of its experts that were past capacity and went to the CPU.
    pub spilled: u64,
    pub pruned: u64,
    /// Rows of zeros it computed.
    pub padding: u64,
    pub launches: u64,
    /// Pairs of prompts in blocks too small for the device, the CPU's as a whole.
    pub left: u64,
    /// Time the device computed, launches included.
    pub device_us: u64,
    /// Time the CPU computed its share of the device's blocks, at the same time.
    pub cpu_us: u64,
}

impl LayerFigures {
    /// Dropped pairs over all pairs of prompts, the CPU's blocks included.
    pub fn drop_rate(&self) -> f64 {
        self.pruned as f64 / self.all().max(1) as f64
    }

    /// Pairs of prompts, wherever they were computed.
    fn all(&self) -> u64 {
        self.pairs + self.left
    }

    /// Padding over all rows the device computed.
    pub fn padding_rate(&self) -> f64 {
        let rows = self.device + self.padding;
        Used { padding: self.padding, rows, ..Used::default() }.padding_rate()
    }

    /// Pairs the device computed over all.
    pub fn device_share(&self) -> f64 {
        self.device as f64 / self.all().max(1) as f64
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.pairs += other.pairs;
        self.device += other.device;
        self.spilled += other.spilled;
        self.pruned += other.pruned;
        self.padding += other.padding;
        self.launches += other.launches;
        self.left += other.left;
        self.device_us += other.device_us;
        self.cpu_us += other.cpu_us;
    }
}

impl NpuFigures {
    /// All layers together.
    pub fn total(&self) -> LayerFigures {
        let mut total = LayerFigures::default();
        self.layers.values().for_each(|layer| total.add(layer));
        total
    }
}
