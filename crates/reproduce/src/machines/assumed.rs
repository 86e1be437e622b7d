//! What is compared and what is taken for granted: the values, and in words the table of the
//! document.

use super::models::MODELS;
use crate::document::Assumed;

/// The machines, by their names among the ready ones.
pub const MACHINES: [&str; 3] = ["laptop-8gb-gpu", "desktop-24gb-gpu", "workstation-2gpu"];
/// Prompt lengths, each read in one pass; those of HybriMoE.
pub const PROMPTS: [u32; 4] = [32, 128, 512, 1024];
/// Part of a GPU's memory left to keys and values, buffers and the screen.
pub const GPU_SPARE: f64 = 0.2;
/// Part of RAM left to everything else.
pub const RAM_SPARE: f64 = 0.1;

/// What is taken for granted. Swept in the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Part of the CPU's bandwidth its kernels reach.
    pub cpu_share: f64,
    /// Part of the CPU's arithmetic its kernels reach.
    pub cpu_arithmetic: f64,
    /// Part of the described rate of PCIe that copies reach; above 1 for a newer link.
    pub link_share: f64,
    /// Start of one expert on the GPU.
    pub gpu_start_us: f64,
    /// Chance that a choice one layer ahead is predicted.
    pub prediction_accuracy: f64,
    /// Skew of the experts' popularity over that of the recorded traces.
    pub skew_factor: f64,
}

/// The values the document begins with.
pub const ASSUMED: Assumptions = Assumptions {
    cpu_share: 0.75,
    cpu_arithmetic: 0.5,
    link_share: 1.0,
    gpu_start_us: 3.0,
    prediction_accuracy: 0.8,
    skew_factor: 1.0,
};

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let mut all = of_hardware();
    all.extend(of_systems());
    all
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn of_hardware() -> Vec<Assumed> {
    let open = ASSUMED;
    vec![
        Assumed::new(
            "kernels",
            format!(
                "{} of the CPU's and 75 % of the GPU's bandwidth, half of both units' arithmetic",
                percent(open.cpu_share)
            ),
            "what good kernels reach; the CPU leaves a quarter of its memory's rate, about what \
             copies to the GPU take",
        ),
        Assumed::new(
            "copies to the GPU",
            "as described: 12.5 GB/s (laptop), 25 GB/s (others), overlapped",
            "from pinned memory; for a static split too, which in llama.cpp neither overlaps nor \
             has pinned memory by default",
        ),
        Assumed::new(
            "start of an expert on the GPU",
            format!("{} us", open.gpu_start_us),
            "experts of a layer in one grouped launch; the same for all systems",
        ),
        Assumed::new(
            "CPU experts of a layer",
            "two latencies of the link and the rows of all tokens, there and back",
            "the same for all systems",
        ),
        Assumed::new(
            "memory left to others",
            format!("{} of the GPU's, {} of RAM", percent(GPU_SPARE), percent(RAM_SPARE)),
            "keys and values, buffers, the screen; on the desktop gpt-oss-120b's experts leave \
             RAM room for little else",
        ),
        Assumed::new(
            "two GPUs",
            "their memory adds up, one works at a time, each with its own link",
            "one stream of tokens goes through the layers in turn; the same for all systems",
        ),
    ]
}

fn of_systems() -> Vec<Assumed> {
    let open = ASSUMED;
    let fitted = MODELS.map(|model| model.routing.fitted_to).join("; ");
    vec![
        Assumed::new(
            "routing",
            format!(
                "synthetic, with statistics of recorded traces ({fitted}) and the models' true k"
            ),
            "recorded ones are short and have fewer experts per token than the models",
        ),
        Assumed::new(
            "pinned experts",
            "the most used of the 256 tokens just before, the same number in each layer",
            "kinder to them than a profile of other texts",
        ),
        Assumed::new(
            "pinned experts in prefill",
            "the faster of computing the others on the CPU and loading them",
            "kTransformers does the first, HybriMoE describes the second",
        ),
        Assumed::new(
            "predictions one layer ahead",
            format!("right {:.0} times in 10, else any expert", 10.0 * open.prediction_accuracy),
            "other systems report 59 to 89 %",
        ),
        Assumed::new(
            "our settings",
            "default cache policy; the prefetcher by replay of 64 tokens before those measured",
            "M6: chosen on other tokens than those it is judged by",
        ),
        Assumed::new(
            "beyond RAM",
            "the disk as described for both; a mapping is LRU over whole experts",
            "kinder to the mapping, which reads by page faults",
        ),
        Assumed::new(
            "left out",
            "attention over the context; keys and values",
            "the same for all systems",
        ),
    ]
}
