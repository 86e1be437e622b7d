//! One layer's groups and capacities from a profile: `motley_plan`'s rules applied to a
//! model. Chooses nothing those do not.

use super::options::{NpuOptions, NpuOverflow};
use motley_model::ModelSpec;
use motley_npu::{ExpertShape, GraphSpec, Precision};
use motley_plan::tiers::{Group, GroupRule, Home, LayerTiers, TierRule, group, place};
use motley_profile::profile::{FORMAT_VERSION, shares};
use motley_profile::{LayerCounts, Origin, Profile, ProfileHeader, Reuse};
use motley_trace::Phase;

/// A profile that expects every expert alike, for a model nobody has profiled.
pub fn even_profile(spec: &ModelSpec) -> Profile {
    let (layers, experts) = (spec.layers.len() as u16, spec.experts as u16);
    Profile {
        header: ProfileHeader {
            version: FORMAT_VERSION,
            model: spec.name.clone().unwrap_or_else(|| spec.architecture.clone()),
            layers,
            experts,
            k: spec.used as u16,
            origin: Origin::default(),
            reuse: Reuse::default(),
            held: Vec::new(),
            passes: None,
            chosen: None,
            overlaps: Vec::new(),
        },
        layers: (0..layers).map(|layer| LayerCounts::empty(layer, experts)).collect(),
    }
}

/// The groups of `layer` that go on the device.
pub(super) fn groups(options: &NpuOptions, layer: u32, used: u32, expert_bytes: u64) -> Vec<Group> {
    let Some(counts) = options.profile.layers.get(layer as usize) else { return Vec::new() };
    let counts = counts.best(Phase::Prefill);
    let rule = TierRule { headroom: options.headroom, ..TierRule::new(options.chunk_tokens, used) };
    let tiers = match options.overflow {
        NpuOverflow::Pad => LayerTiers::uniform(&counts, &rule),
        NpuOverflow::Spill | NpuOverflow::Prune => LayerTiers::of(&counts, &rule),
    };
    let rule = GroupRule {
        expert_bytes,
        max_graph_bytes: options.limits.max_graph_bytes,
        max_experts: options.group_experts,
    };
    let groups = group(&counts, &tiers, &rule);
    let Some(costs) = &options.costs else { return groups };
    let pairs = f64::from(options.chunk_tokens * used);
    let loads: Vec<u32> = shares(&counts).iter().map(|share| (share * pairs) as u32).collect();
    let placed = place(groups, &loads, costs);
    placed.into_iter().filter(|placed| placed.home == Home::Device).map(|p| p.group).collect()
}

/// Bytes of one expert in a graph; biases are too small to count.
pub(super) fn expert_bytes(shape: ExpertShape, precision: Precision) -> u64 {
    precision.matrix_bytes(3 * (shape.hidden * shape.inner) as u64)
}

/// The graph of `group`.
pub(super) fn graph_spec(group: &Group, like: &GraphSpec) -> GraphSpec {
    GraphSpec { experts: group.experts.len(), capacity: group.capacity as usize, ..*like }
}
