//! What is compared, the goal, and in words what is taken for granted: the table of the document.
//! Values are those of `machines`.

use super::models::MODELS;
use crate::document::Assumed;
use crate::machines::{ASSUMED, GPU_SPARE, RAM_SPARE};

/// The machines, by their names among the ready ones.
pub const MACHINES: [&str; 4] =
    ["laptop-8gb-gpu", "desktop-16gb-gpu", "desktop-24gb-gpu-32gb", "desktop-2gpu-24gb-8gb"];
/// Gain over two memories that is asked for beyond RAM.
pub const GOAL: f64 = 1.5;

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let mut fitted: Vec<&str> = MODELS.iter().map(|model| model.routing.fitted_to).collect();
    fitted.dedup();
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    vec![
        Assumed::new(
            "kernels and links",
            format!(
                "{} of bandwidth, half of arithmetic; links as described, beside computing",
                percent(ASSUMED.cpu_share)
            ),
            "as `motley reproduce machines`; the disk's reads do not slow the CPU down",
        ),
        Assumed::new(
            "memory left to others",
            format!("{} of each GPU's, {} of RAM", percent(GPU_SPARE), percent(RAM_SPARE)),
            "keys and values, buffers, the screen",
        ),
        Assumed::new(
            "dense weights",
            "on GPUs as far as they fit, the rest in RAM; the same for all systems",
            "what they leave of RAM is for experts; where they do not fit, ours also tries them in RAM",
        ),
        Assumed::new(
            "rows",
            "two latencies of a link and the bytes both ways, before a unit's first expert of a layer",
            "only units that do not have the layer's dense weights pay",
        ),
        Assumed::new(
            "routing",
            format!("synthetic, with statistics of recorded traces ({})", fitted.join("; ")),
            "no recorded trace has these models' layers and experts per token; gpt-oss-120b's has its layers",
        ),
        Assumed::new(
            "settings",
            "prefetchers by replay of 64 tokens before those decoded; for the prompt the better of two",
            "M6; the same for today's arrangement and for ours",
        ),
        Assumed::new(
            "llama.cpp beyond RAM",
            "whole layers on GPUs, its mapping as LRU over whole experts, prompts copied to the first GPU",
            "kinder to the mapping, which reads by page faults",
        ),
        Assumed::new(
            "predictions one layer ahead",
            format!("right {:.0} times in 10, else any expert", 10.0 * ASSUMED.prediction_accuracy),
            "other systems report 59 to 89 %",
        ),
        Assumed::new(
            "left out",
            "attention over the context; contention for RAM between disk, copies and the CPU",
            "the same for all systems",
        ),
    ]
}
