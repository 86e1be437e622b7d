//! The models of the source's Table II. Figures only.

use motley_cost::ExpertShape;

/// A model of the source's Table II.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    pub(super) layers: u16,
    pub(super) experts: u16,
    pub(super) top_k: u16,
    pub(super) shared: u16,
    pub(super) hidden: u32,
    pub(super) intermediate: u32,
    /// Parameters of attention per layer, from the models' public configurations.
    pub(super) attention_m: f64,
    /// Parameters of embedding and output head.
    pub(super) ends_m: f64,
    /// Prefetched experts per layer (G4): TopK, but one for Mixtral (section IV-D).
    pub(super) prefetched: u32,
}

/// The four models.
pub const MODELS: [Model; 4] = [
    Model {
        name: "DeepSeek-MoE",
        layers: 27,
        experts: 64,
        top_k: 6,
        shared: 2,
        hidden: 2048,
        intermediate: 1408,
        attention_m: 16.8,
        ends_m: 210.0,
        prefetched: 6,
    },
    Model {
        name: "Qwen3-30B-A3B",
        layers: 48,
        experts: 128,
        top_k: 8,
        shared: 0,
        hidden: 2048,
        intermediate: 768,
        attention_m: 18.9,
        ends_m: 311.0,
        prefetched: 8,
    },
    Model {
        name: "Phi-3.5-MoE",
        layers: 32,
        experts: 16,
        top_k: 2,
        shared: 0,
        hidden: 4096,
        intermediate: 6400,
        attention_m: 41.9,
        ends_m: 131.0,
        prefetched: 2,
    },
    Model {
        name: "Mixtral-8x7B",
        layers: 32,
        experts: 8,
        top_k: 2,
        shared: 0,
        hidden: 4096,
        intermediate: 14336,
        attention_m: 41.9,
        ends_m: 131.0,
        prefetched: 1,
    },
];

/// Bits of a weight: the source's sizes are those of 16-bit weights.
const BITS: f64 = 16.0;

impl Model {
    pub(super) fn shape(&self) -> ExpertShape {
        ExpertShape::new(self.hidden, self.intermediate, BITS)
    }

    pub(super) fn expert_bytes(&self) -> u64 {
        let experts = u64::from(self.layers) * u64::from(self.experts + self.shared);
        experts * self.shape().bytes
    }
}
