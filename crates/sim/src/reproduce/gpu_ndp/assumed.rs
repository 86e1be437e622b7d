//! What the source leaves open, in words: the table of the document.

use super::super::document::Assumed;
use super::setup::Assumptions;

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let open = Assumptions::default();
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
                "made, skew {} (a third of it with 16 experts or fewer), 20 % of the experts kept \
                 from token to token",
                open.skew
            ),
            "fitted to a recorded trace of Qwen3-30B-A3B",
        ),
        Assumed::new(
            "experts moved in part",
            "to 1/256 of an expert",
            "the source moves partial experts",
        ),
    ]
}
