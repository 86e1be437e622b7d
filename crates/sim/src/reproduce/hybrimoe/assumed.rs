//! What the source leaves open, in words: the table of the document.

use super::super::document::Assumed;
use super::ASSUMED;

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
            format!("right {:.0} times in 10", 10.0 * open.foresight),
            "other systems report 59 to 89 %",
        ),
        Assumed::new(
            "routing",
            format!("made; almost even popularity (skew {})", open.skew),
            "the source's Figure 3a calls it even; the share of experts kept from token to token \
             is solved for so that LRU at 25 % hits as published",
        ),
        Assumed::new(
            "`alpha` of MRS",
            open.mrs_alpha.to_string(),
            "the value in the published program",
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
