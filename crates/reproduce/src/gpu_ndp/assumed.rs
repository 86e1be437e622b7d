//! What the source leaves open: the values taken, and in words the table of the document.

use crate::document::Assumed;

/// What the source leaves open. Swept in the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Part of the near-data units' peak bandwidth that is reached.
    pub near_efficiency: f64,
    /// Tokens that one pass over an expert's weights serves on a near-data unit.
    pub near_reuse: f64,
    /// Part of the PCIe peak that is reached.
    pub link_efficiency: f64,
    /// Part of the CPU's peak bandwidth Fiddler reaches.
    pub cpu_efficiency: f64,
    /// One activation row over the link.
    pub activation_us: f64,
    /// MoNDE's correction of its balance.
    pub monde_alpha: f64,
    /// Skew of expert popularity for models with many experts.
    pub skew: f64,
}

/// The values the document begins with; the document sweeps each.
pub const ASSUMED: Assumptions = Assumptions {
    near_efficiency: 0.6,
    near_reuse: 64.0,
    link_efficiency: 0.85,
    cpu_efficiency: 0.85,
    activation_us: 5.0,
    monde_alpha: 1.0,
    skew: 0.7,
};

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let open = ASSUMED;
    vec![
        Assumed::new(
            "part of the units' 102.4 GB/s that is reached",
            open.near_efficiency.to_string(),
            "The source simulates DRAM by the cycle and states no efficiency. Its ratios to \
             Fiddler and on-demand, taken alone, would imply 0.4; the comparisons with MoNDE \
             hardly depend on it.",
        ),
        Assumed::new(
            "tokens one pass over the weights serves on a unit (prefill)",
            open.near_reuse.to_string(),
            "Table I names 64 multipliers but no clock or buffer.",
        ),
        Assumed::new(
            "PCIe, CPU, GPU",
            format!(
                "{:.0} %, {:.0} %, 80 % of peak bandwidth",
                100.0 * open.link_efficiency,
                100.0 * open.cpu_efficiency
            ),
            "what copies and kernels usually reach",
        ),
        Assumed::new(
            "one activation over the link (`T_a`)",
            format!("{} us", open.activation_us),
            "a small DMA transfer",
        ),
        Assumed::new(
            "MoNDE's correction factor",
            open.monde_alpha.to_string(),
            "the source calls it learned from history",
        ),
        Assumed::new(
            "routing",
            format!(
                "synthetic, skew {} (a third of it with 16 experts or fewer), 20 % of the experts kept \
                 from token to token",
                open.skew
            ),
            "fitted to a recorded trace of Qwen3-30B-A3B",
        ),
        Assumed::new(
            "Phi-3.5-MoE's experts",
            "4096 x 6400",
            "Table II prints hidden 6400 and intermediate 4096; the published model has them the \
             other way round. An expert is as large either way, a row of activations is not.",
        ),
        Assumed::new(
            "DeepSeek-MoE's two shared experts",
            "on the GPU with attention; in end-to-end figures only",
            "the source does not say where they are computed",
        ),
        Assumed::new(
            "experts moved in part",
            "to 1/256 of an expert",
            "the source moves partial experts",
        ),
    ]
}
