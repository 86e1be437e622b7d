//! What a profile holds, and what follows from its counts. Not how it is read or built.

use motley_trace::{ExpertGrid, ExpertKey, Phase};
use serde::{Deserialize, Serialize};

use crate::chosen::ChosenRules;
use crate::passes::PassCosts;
use crate::reuse::Reuse;

/// Version of the format this crate writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// Routing of one model over some text.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Model, shape and where the counts come from.
    pub header: ProfileHeader,
    /// Loads per layer, as many as the header names; a layer without experts has zeros.
    pub layers: Vec<LayerCounts>,
}

/// First line of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileHeader {
    /// Format version, [`FORMAT_VERSION`].
    #[serde(rename = "motley_profile")]
    pub version: u32,
    /// For people.
    pub model: String,
    /// Layers, those without experts included.
    pub layers: u16,
    /// Routed experts per layer.
    pub experts: u16,
    /// Experts per token.
    pub k: u16,
    pub origin: Origin,
    /// How soon experts come back in decode.
    #[serde(default)]
    pub reuse: Reuse,
    /// Decode hits of caches under the policy runs use, by size, where the routing was replayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// What passes cost where the profile was recorded, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassCosts>,
    /// What replay chose, where it was asked and found something better than the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ChosenRules>,
    /// How far the profile agrees with other text, where that was checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlaps: Vec<Overlap>,
}

/// One size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Part of all experts that have slots, 0 to 1; rises from entry to entry.
    pub share: f64,
    /// Part of the experts needed in decode that were there.
    pub hit_rate: f64,
}

impl ProfileHeader {
    /// Expected decode hit rate of a cache with `share` of all experts: as replayed under the
    /// policy runs use, else that of LRU. `None` when decode was not observed.
    pub fn hit_rate(&self, share: f64) -> Option<f64> {
        if self.held.is_empty() {
            return self.reuse.hit_rate(share);
        }
        let none = Held { share: 0.0, hit_rate: 0.0 };
        let above = self.held.partition_point(|held| held.share < share);
        let low = above.checked_sub(1).map_or(none, |below| self.held[below]);
        let high = self.held.get(above).copied().unwrap_or(low);
        let way = (share - low.share) / (high.share - low.share).max(f64::MIN_POSITIVE);
        Some(low.hit_rate + way.clamp(0.0, 1.0) * (high.hit_rate - low.hit_rate))
    }
}

/// Provenance of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Names of the texts or traces, without folders.
    pub sources: Vec<String>,
    pub prefill_tokens: u64,
    pub decode_tokens: u64,
    /// Program and version that wrote the profile.
    pub written_by: String,
    /// Day it was written, `2026-01-31`; empty when unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
}

/// Agreement with one other text on the busiest experts (Overlap@K).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlap {
    /// Name of the other text.
    pub against: String,
    pub phase: Phase,
    /// How many of the busiest experts are compared.
    pub k: u16,
    /// Mean over the layers of `|top-K ∩ top-K'| / K`.
    pub mean: f64,
    pub median: f64,
}

/// Tokens routed to each expert of one layer: `n(l,e)` of N1, by phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerCounts {
    /// The layer; lines come in order.
    #[serde(rename = "l")]
    pub layer: u16,
    /// In prefill, one count per expert.
    #[serde(rename = "p")]
    pub prefill: Vec<u64>,
    /// In decode, one count per expert.
    #[serde(rename = "d")]
    pub decode: Vec<u64>,
}

impl LayerCounts {
    /// A layer nobody visited.
    pub fn empty(layer: u16, experts: u16) -> Self {
        let zeros = vec![0; usize::from(experts)];
        Self { layer, prefill: zeros.clone(), decode: zeros }
    }

    /// Counts of one phase.
    pub fn of(&self, phase: Phase) -> &[u64] {
        match phase {
            Phase::Prefill => &self.prefill,
            Phase::Decode => &self.decode,
        }
    }

    /// Counts of both phases together.
    pub fn both(&self) -> Vec<u64> {
        self.prefill.iter().zip(&self.decode).map(|(p, d)| p + d).collect()
    }

    /// `phase` where it was observed, otherwise both together: text that was only read says
    /// something about decode too.
    pub fn best(&self, phase: Phase) -> Vec<u64> {
        let counts = self.of(phase);
        if counts.iter().any(|count| *count > 0) { counts.to_vec() } else { self.both() }
    }
}

impl Profile {
    /// Without what was measured on another processor than `cpu`, or with other threads.
    pub fn at_home(mut self, cpu: &str, threads: u32) -> Self {
        let here = |costs: &PassCosts| costs.cpu == cpu && costs.threads == threads;
        self.header.passes = self.header.passes.filter(here);
        self
    }

    /// Layers × experts.
    pub fn grid(&self) -> ExpertGrid {
        ExpertGrid { layers: self.header.layers, experts: self.header.experts }
    }

    /// Layers somebody visited, those that have experts.
    pub fn visited(&self) -> impl Iterator<Item = &LayerCounts> {
        self.layers
            .iter()
            .filter(|layer| layer.prefill.iter().chain(&layer.decode).any(|count| *count > 0))
    }

    /// All experts of the visited layers: the most used one of each layer, then the second of
    /// each, and so on. What a device begins with.
    pub fn most_used(&self, phase: Phase) -> Vec<ExpertKey> {
        let ranked: Vec<_> =
            self.visited().map(|layer| (layer.layer, rank(&layer.best(phase)))).collect();
        let nth = |nth: usize| {
            ranked.iter().filter_map(move |(layer, experts)| {
                Some(ExpertKey::new(*layer, *experts.get(nth)?))
            })
        };
        (0..usize::from(self.header.experts)).flat_map(nth).collect()
    }

    /// Mean of `r_l` over the visited layers; 0 when none was.
    pub fn mean_imbalance(&self, phase: Phase) -> f64 {
        let ratios: Vec<f64> = self.visited().map(|layer| imbalance(&layer.best(phase))).collect();
        ratio(ratios.iter().sum(), ratios.len() as f64)
    }
}

/// `r_l = max_e n(l,e) / mean_e n(l,e)` (N1): 1 is perfectly even; 0 when nothing was routed.
pub fn imbalance(counts: &[u64]) -> f64 {
    let max = counts.iter().copied().max().unwrap_or(0) as f64;
    let sum: f64 = counts.iter().map(|count| *count as f64).sum();
    ratio(max * counts.len() as f64, sum)
}

/// Experts by falling count; equal counts in the order of their numbers (N1).
pub fn rank(counts: &[u64]) -> Vec<u16> {
    let mut order: Vec<u16> = (0..counts.len() as u16).collect();
    order.sort_by_key(|expert| std::cmp::Reverse(counts[usize::from(*expert)]));
    order
}

/// Each expert's part of the layer's load, summing to 1; even when nothing was routed.
pub fn shares(counts: &[u64]) -> Vec<f64> {
    let sum: f64 = counts.iter().map(|count| *count as f64).sum();
    if sum > 0.0 {
        counts.iter().map(|count| *count as f64 / sum).collect()
    } else {
        vec![1.0 / counts.len().max(1) as f64; counts.len()]
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_source() {
        // B = 256 tokens over E = 8 experts with r = 2: the busiest gets 2 · 256 / 8 = 64.
        let counts = [64, 32, 32, 32, 32, 32, 16, 16];
        assert_eq!(imbalance(&counts), 2.0);
        assert_eq!(imbalance(&counts) * 256.0 / 8.0, 64.0);
        assert_eq!((imbalance(&[5; 4]), imbalance(&[0; 4]), imbalance(&[])), (1.0, 0.0, 0.0));
    }

    #[test]
    fn rank_is_stable_and_shares_add_up() {
        assert_eq!(rank(&[3, 9, 3, 0]), [1, 0, 2, 3]);
        assert_eq!(shares(&[1, 3]), [0.25, 0.75]);
        assert_eq!(shares(&[0, 0]), [0.5, 0.5]);
    }

    #[test]
    fn text_that_was_only_read_speaks_for_decode_too() {
        let mut layer = LayerCounts::empty(0, 2);
        layer.prefill = vec![4, 1];
        assert_eq!(layer.best(Phase::Decode), [4, 1]);
        layer.decode = vec![0, 7];
        assert_eq!(layer.best(Phase::Decode), [0, 7]);
        assert_eq!(layer.both(), [4, 8]);
    }
}
