//! Overlap@K: how far two profiles agree on the busiest experts (N1). Compares; judges nothing.

use motley_trace::Phase;

use crate::profile::{Overlap, Profile, rank};

/// Two profiles of different shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "profiles of {} × {} and {} × {} experts cannot be compared",
    ours.0, ours.1, theirs.0, theirs.1
)]
pub struct OtherShape {
    /// Layers and experts.
    pub ours: (u16, u16),
    /// Layers and experts.
    pub theirs: (u16, u16),
}

/// Overlap@K of two profiles, over the layers both visited.
///
/// A layer counts `|top-K ∩ top-K'| / K`; `k` is cut to the number of experts.
pub fn overlap_at(
    profile: &Profile,
    other: &Profile,
    phase: Phase,
    k: u16,
) -> Result<Overlap, OtherShape> {
    let shape = |profile: &Profile| (profile.header.layers, profile.header.experts);
    if shape(profile) != shape(other) {
        return Err(OtherShape { ours: shape(profile), theirs: shape(other) });
    }
    let k = k.clamp(1, profile.header.experts.max(1));
    let pairs = profile.layers.iter().zip(&other.layers);
    let mut found: Vec<f64> = pairs
        .map(|(a, b)| (a.best(phase), b.best(phase)))
        .filter(|(a, b)| a.iter().any(|n| *n > 0) && b.iter().any(|n| *n > 0))
        .map(|(a, b)| agreement(&a, &b, usize::from(k)))
        .collect();
    found.sort_by(f64::total_cmp);
    let mean = found.iter().sum::<f64>() / found.len().max(1) as f64;
    let against = other.header.origin.sources.join(", ");
    Ok(Overlap { against, phase, k, mean, median: median(&found) })
}

fn agreement(a: &[u64], b: &[u64], k: usize) -> f64 {
    let (a, b) = (rank(a), rank(b));
    let common = a.iter().take(k).filter(|expert| b[..k.min(b.len())].contains(expert)).count();
    common as f64 / k as f64
}

fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
