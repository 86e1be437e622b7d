//! The models of the source's Table II. Figures only.

/// A model of the source's Table II.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// Layers.
    pub layers: u16,
    /// Routed experts per layer.
    pub experts: u16,
    /// Activated experts.
    pub top_k: u16,
    /// Width of a hidden row.
    pub hidden: u32,
    /// Width inside a routed expert.
    pub intermediate: u32,
    /// LRU hit rate with a quarter of the experts cached (Figure 9 and section VI-D).
    pub lru_quarter: f64,
}

/// The three models. Table II prints 18944 for Qwen2's routed experts; that is the width of its
/// dense layers and would make 57 billion parameters 365. The model's own 2560 is used.
pub const MODELS: [Model; 3] = [
    Model {
        name: "Mixtral",
        layers: 32,
        experts: 8,
        top_k: 2,
        hidden: 4096,
        intermediate: 14336,
        lru_quarter: 0.302,
    },
    Model {
        name: "Qwen2",
        layers: 28,
        experts: 64,
        top_k: 8,
        hidden: 3584,
        intermediate: 2560,
        lru_quarter: 0.450,
    },
    Model {
        name: "DeepSeek",
        layers: 26,
        experts: 64,
        top_k: 6,
        hidden: 2048,
        intermediate: 1408,
        lru_quarter: 0.477,
    },
];
