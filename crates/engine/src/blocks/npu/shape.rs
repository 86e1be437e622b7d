//! One layer's groups and capacities from a profile: `motley_plan`'s rules applied to a
//! model. Chooses nothing those do not.

use super::options::{NpuChoice, NpuOptions, NpuOverflow};
use motley_cost::ComputeCost;
use motley_model::{LayerExperts, ModelSpec};
use motley_npu::{ExpertShape, GraphSpec, Precision};
use motley_plan::tiers::{Group, GroupCosts, GroupRule, Home, LayerTiers, TierRule, group, place};
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

/// The groups of a layer, hottest first, and what is known of their costs.
pub(super) struct Shaped {
    groups: Vec<Group>,
    /// Rows of each expert that a chunk is expected to have.
    loads: Vec<u32>,
    costs: Option<GroupCosts>,
    /// What an expert costs on the CPU, where the device is to be measured.
    cpu: Option<ComputeCost>,
}

impl Shaped {
    /// The groups of `layer`, whose experts have this many bytes on the device.
    pub(super) fn of(options: &NpuOptions, layer: &LayerExperts, expert_bytes: u64) -> Self {
        let (costs, cpu) = match options.choice {
            NpuChoice::Every => (None, None),
            NpuChoice::Known(costs) => (Some(costs), None),
            NpuChoice::Measured { cpu, .. } => (None, Some(cpu)),
        };
        let mut shaped = Self { groups: Vec::new(), loads: Vec::new(), costs, cpu };
        let counts = options.profile.layers.get(layer.layer as usize);
        let Some(counts) = counts.map(|counts| counts.best(Phase::Prefill)) else { return shaped };
        let rule = TierRule::new(options.chunk_tokens, layer.used);
        let rule = TierRule { headroom: options.headroom, ..rule };
        let tiers = match options.overflow {
            NpuOverflow::Pad => LayerTiers::uniform(&counts, &rule),
            NpuOverflow::Spill | NpuOverflow::Prune => LayerTiers::of(&counts, &rule),
        };
        let rule = GroupRule {
            expert_bytes,
            max_graph_bytes: options.limits.max_graph_bytes,
            max_experts: options.group_experts,
        };
        let pairs = f64::from(options.chunk_tokens * layer.used);
        shaped.loads = shares(&counts).iter().map(|share| (share * pairs) as u32).collect();
        shaped.groups = group(&counts, &tiers, &rule);
        shaped
    }

    pub(super) fn take_groups(&mut self) -> Vec<Group> {
        std::mem::take(&mut self.groups)
    }

    /// Whether a chunk of `group` is expected to be faster on the device; yes where nobody knows
    /// costs.
    pub(super) fn pays(&self, group: &Group) -> bool {
        let placed = |costs| place(vec![group.clone()], &self.loads, costs);
        self.costs.as_ref().is_none_or(|costs| placed(costs)[0].home == Home::Device)
    }

    /// Whether the device's costs are to be measured.
    pub(super) fn wants_measured(&self) -> bool {
        self.cpu.is_some()
    }

    /// One launch of `group` took `us`: what the coming ones are judged by.
    pub(super) fn measured(&mut self, group: &Group, us: f64) {
        let device_row_us = us / group.rows().max(1) as f64;
        self.costs = self.cpu.map(|cpu| GroupCosts { device_launch_us: 0.0, device_row_us, cpu });
    }
}

/// Bytes of one expert in a graph; biases are too small to count.
pub(super) fn expert_bytes(shape: ExpertShape, precision: Precision) -> u64 {
    precision.matrix_bytes(3 * (shape.hidden * shape.inner) as u64)
}

/// The graph of `group`.
pub(super) fn graph_spec(group: &Group, like: &GraphSpec) -> GraphSpec {
    GraphSpec { experts: group.experts.len(), capacity: group.capacity as usize, ..*like }
}
