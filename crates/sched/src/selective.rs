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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_a_layer_is_read_whole() {
        assert_eq!(load_mode(7, 8), LoadMode::All);
        assert_eq!(load_mode(0, 0), LoadMode::Selective);
    }
}
