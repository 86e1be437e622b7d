//! Processors other than x86-64, where the build follows the CPU.

/// Not known.
pub fn offered_features() -> Vec<&'static str> {
    Vec::new()
}
