//! What the source leaves open: the values taken, and in words the table of the document.

use crate::document::Assumed;

/// What the source leaves open. Swept in the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Weights per second the CPU kernels get through at one token.
    pub cpu_gb_per_s: f64,
    /// Arithmetic of the CPU kernels at many tokens.
    pub cpu_gflop_per_s: f64,
    /// Experts over PCIe.
    pub link_gb_per_s: f64,
    /// Attention, router and shared experts of one layer.
    pub dense_layer_us: f64,
    /// Chance that a choice one layer ahead is predicted.
    pub prediction_accuracy: f64,
    /// Skew of expert popularity.
    pub skew: f64,
    /// `alpha` of MRS.
    pub mrs_alpha: f64,
}

/// The values the document begins with; the document sweeps each.
pub const ASSUMED: Assumptions = Assumptions {
    cpu_gb_per_s: 12.5,
    cpu_gflop_per_s: 350.0,
    link_gb_per_s: 12.6,
    dense_layer_us: 300.0,
    prediction_accuracy: 0.8,
    skew: 0.15,
    mrs_alpha: 0.5,
};

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let open = ASSUMED;
    vec![
        Assumed::new(
            "CPU kernels at one token",
            format!("{} GB/s of weights", open.cpu_gb_per_s),
            "implied by the source's own baseline: 0.21 s per token for about 170 experts of \
             15.5 MB on the CPU",
        ),
        Assumed::new(
            "CPU kernels at many tokens",
            format!("{} GFLOP/s", open.cpu_gflop_per_s),
            "half of what ten cores with one AVX-512 unit can do",
        ),
        Assumed::new(
            "experts over PCIe",
            format!("{} GB/s", open.link_gb_per_s),
            "80 % of PCIe 3.0 x16, which is what this CPU has",
        ),
        Assumed::new(
            "GPU",
            "half its arithmetic, three quarters of its bandwidth",
            "what good kernels reach",
        ),
        Assumed::new(
            "attention, router, shared experts",
            format!("{} us a layer and 1 us a token", open.dense_layer_us),
            "not measured in the source",
        ),
        Assumed::new(
            "predictions one layer ahead",
            format!("right {:.0} times in 10", 10.0 * open.prediction_accuracy),
            "other systems report 59 to 89 %",
        ),
        Assumed::new(
            "routing",
            format!("synthetic; almost even popularity (skew {})", open.skew),
            "the source's Figure 3a calls it even; the share of experts kept from token to token \
             is solved for so that LRU at 25 % hits as published",
        ),
        Assumed::new(
            "`alpha` of MRS",
            open.mrs_alpha.to_string(),
            "the paper names none; it is the default of `KScoreAwareCache` in the published program \
             (PKU-SEC-Lab/HybriMoE, 508a85b). That has p = 12 for every model; here p is twice the \
             activated experts, as the paper says",
        ),
        Assumed::new(
            "prompt of the ablation in prefill",
            "speed-ups: mean of the four lengths; seconds: 128 tokens",
            "Table III states no length; Figure 3d compares prefill at 128 tokens",
        ),
        Assumed::new(
            "Qwen2's experts",
            "3584 x 2560",
            "Table II prints 18944, which would make the model 365 billion parameters",
        ),
        Assumed::new(
            "buffers beside the cache",
            "8 per device",
            "for experts that do not stay, and for guesses",
        ),
    ]
}
