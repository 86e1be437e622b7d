//! What the source leaves open: the values taken, and in words the table of the document.

use crate::document::Assumed;

/// What the source leaves open. Swept in the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Spread of lasting popularity.
    pub popularity: f64,
    /// Spread of a prompt's own popularity.
    pub drift: f64,
    /// Spread of a passage's own popularity.
    pub burst: f64,
    /// Rows given per row expected.
    pub headroom: f64,
    /// Rows of the base system's one shape over the even load.
    pub fixed_shape: f64,
    /// Draw of the device at work.
    pub device_w: f64,
    /// Draw of the CPU at work.
    pub cpu_w: f64,
}

/// The values the document begins with; the document sweeps each.
pub const ASSUMED: Assumptions = Assumptions {
    popularity: 0.7,
    drift: 0.4,
    burst: 0.6,
    headroom: 1.0,
    fixed_shape: 4.0,
    device_w: 7.1,
    cpu_w: 8.5,
};

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let open = ASSUMED;
    vec![
        Assumed::new(
            "routing",
            format!(
                "synthetic: log-normal popularity of {} that lasts, {} by prompt, {} by passage",
                open.popularity, open.drift, open.burst
            ),
            "set so that the busiest experts are predicted, and tokens dropped, about as often as \
             published; r_l then is 2.38 (see Shapes)",
        ),
        Assumed::new(
            "headroom of a tier",
            open.headroom.to_string(),
            "the source assigns by expected load",
        ),
        Assumed::new(
            "fixed shape of the base system",
            format!("{} times the even load", open.fixed_shape),
            "128 rows, the largest capacity of its evaluation (section 5.1); Table 5 goes on to 256",
        ),
        Assumed::new(
            "one graph",
            "launch, weights of each expert, rows; fitted to Table 5, serial execution",
            "Table 5 gives twelve configurations; the two largest graphs rise again, and one takes any \
             number of rows: these three are left out",
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
            "device: average power of a dense kernel (Table 8); CPU: its 9.66 J with Core ML alone (Table \
             7) over 1.139 s (Table 6), of Qwen3-MoE",
        ),
        Assumed::new(
            "overlap of CPU and device",
            "none",
            "the source synchronises after each group",
        ),
    ]
}
