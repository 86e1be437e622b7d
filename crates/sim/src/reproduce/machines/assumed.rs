//! What is taken for granted, in words: the table of the document.

use super::super::document::Assumed;
use super::models::MODELS;
use super::{ASSUMED, GPU_SPARE, RAM_SPARE};

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
            format!("made, with statistics of recorded traces ({fitted}) and the models' true k"),
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
            format!("right {:.0} times in 10, else any expert", 10.0 * open.foresight),
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
