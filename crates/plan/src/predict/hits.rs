//! How many of the routed experts are on the GPU, in RAM and on disk. From a profile where there
//! is one, otherwise from what recorded traces have in common.

use motley_profile::Profile;
use motley_profile::profile::shares;
use motley_trace::Phase;

use super::Case;
use crate::demand::Demand;

/// Without a profile a cache that holds the part `c` of all experts misses `(1-c)^4`: five
/// recorded traces of 64 to 300 tokens missed 14 to 34 % at a quarter and 2 to 15 % at a half
/// under the default policy; this gives 32 % and 6 %.
pub const MISS_EXPONENT: f64 = 4.0;

/// Where a routed expert is found, as shares that sum to at most 1; the rest is in RAM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whereabouts {
    /// On a GPU with memory of its own.
    pub on_gpu: f64,
    pub on_disk: f64,
}

impl Whereabouts {
    /// For one token after many.
    pub(crate) fn decode(case: &Case<'_>) -> Self {
        let placement = case.placement;
        let all = f64::from(placement.experts).max(1.0);
        let hit = |share: f64| hit_rate(case.demand, case.profile, share);
        let on_gpu = hit(f64::from(placement.gpu_slots()) / all);
        Self { on_gpu, on_disk: (1.0 - hit(placement.held())).clamp(0.0, 1.0 - on_gpu) }
    }

    /// For a chunk of a prompt: it sweeps over all layers, so a cache holds what it holds.
    pub(crate) fn prefill(case: &Case<'_>) -> Self {
        let placement = case.placement;
        let all = f64::from(placement.experts).max(1.0);
        let on_gpu = (f64::from(placement.gpu_slots()) / all).min(1.0);
        Self { on_gpu, on_disk: (1.0 - placement.held()).clamp(0.0, 1.0 - on_gpu) }
    }
}

/// Expected decode hit rate of a cache with `share` of all experts, once warm.
///
/// A cache below one token's experts cannot hit more than the part it holds of them, whatever
/// it keeps.
pub fn hit_rate(demand: &Demand, profile: Option<&Profile>, share: f64) -> f64 {
    if share >= 1.0 {
        return 1.0;
    }
    let known = profile.and_then(|profile| profile.header.hit_rate(share));
    let expected = known.unwrap_or(1.0 - (1.0 - share.max(0.0)).powf(MISS_EXPONENT));
    let slots = share * demand.all_experts();
    let most = if demand.token_experts() > 0.0 { slots / demand.token_experts() } else { 1.0 };
    expected.min(most).clamp(0.0, 1.0)
}

/// Different experts of a layer that `tokens` tokens use, on average over the layers:
/// `Σ_e 1 - (1 - p_e)^tokens`.
pub fn distinct_experts(demand: &Demand, profile: Option<&Profile>, tokens: u32) -> f64 {
    let touched = |shares: &[f64]| {
        let chosen = |share: &f64| (share * f64::from(demand.used)).min(1.0);
        shares.iter().map(|s| 1.0 - (1.0 - chosen(s)).powf(f64::from(tokens))).sum::<f64>()
    };
    let known = profile.filter(|p| u32::from(p.header.experts) == demand.experts);
    let layers: Vec<f64> = known
        .into_iter()
        .flat_map(Profile::visited)
        .map(|layer| touched(&shares(&layer.best(Phase::Prefill))))
        .collect();
    if layers.is_empty() {
        let even = vec![1.0 / f64::from(demand.experts.max(1)); demand.experts as usize];
        return touched(&even);
    }
    layers.iter().sum::<f64>() / layers.len() as f64
}
