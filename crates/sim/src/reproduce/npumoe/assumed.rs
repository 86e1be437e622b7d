//! What the source leaves open, in words: the table of the document.

use super::super::document::Assumed;
use super::ASSUMED;

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let open = ASSUMED;
    vec![
        Assumed::new(
            "routing",
            format!(
                "made: log-normal popularity of {} that lasts, {} by prompt, {} by passage",
                open.popularity, open.drift, open.burst
            ),
            "set so that the busiest experts are foretold, and tokens dropped, about as often as \
             published; r_l then is 2.5",
        ),
        Assumed::new(
            "headroom of a tier",
            open.headroom.to_string(),
            "the source assigns by expected load",
        ),
        Assumed::new(
            "fixed shape of the base system",
            format!("{} times the even load", open.fixed_shape),
            "128 rows, the largest capacity the source tries",
        ),
        Assumed::new(
            "one graph",
            "launch, weights of each expert, rows; fitted to Table 5, serial execution",
            "Table 5 gives eleven configurations; the two largest graphs rise again and are left out",
        ),
        Assumed::new(
            "the CPU path",
            "Table 4's expert time over its 2048 rows",
            "one figure for one layer is published",
        ),
        Assumed::new(
            "power",
            format!(
                "{} W device, {} W CPU while it computes or launches",
                open.device_w, open.cpu_w
            ),
            "Tables 7 and 8: joules over seconds",
        ),
        Assumed::new(
            "overlap of CPU and device",
            "none",
            "the source synchronises after each group",
        ),
    ]
}
