//! W7: load only the routed experts, or all of a layer in one sweep. A rule, not a loader.

/// How a layer's experts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMode {
    /// Only those that are needed.
    Selective,
    /// All, in the order of the file.
    All,
}

/// From this share of the experts on, a sweep is as good as picking.
pub const ALL_FROM: f64 = 0.8;

/// The mode for `needed` of `experts`.
pub fn load_mode(needed: usize, experts: usize) -> LoadMode {
    if needed > 0 && needed as f64 >= ALL_FROM * experts as f64 {
        LoadMode::All
    } else {
        LoadMode::Selective
    }
}

/// The mode before routing is known: `batch · k` pairs bound the distinct experts from above, so
/// `batch · k >= alpha · experts` switches. `alpha` lies between 0.8 and 1.
pub fn expected_mode(batch: u32, top_k: u16, experts: u16, alpha: f64) -> LoadMode {
    let pairs = f64::from(batch) * f64::from(top_k);
    if pairs >= alpha * f64::from(experts) { LoadMode::All } else { LoadMode::Selective }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_batch_needs_everything() {
        let mode = |batch| expected_mode(batch, 8, 128, 0.8);
        assert_eq!([1, 12, 13, 64].map(mode), {
            use LoadMode::{All, Selective};
            [Selective, Selective, All, All]
        });
        assert_eq!(load_mode(7, 8), LoadMode::All);
        assert_eq!(load_mode(0, 0), LoadMode::Selective);
    }
}
