//! N4: several experts of one tier in one static graph `[G·C, H]`, so that one launch serves them.

use motley_profile::profile::rank;

use super::capacity::LayerTiers;

/// Group sizes that are tried, largest first.
pub const GROUP_SIZES: [usize; 3] = [16, 8, 4];
/// Largest graph the source's device still runs itself.
pub const MAX_GRAPH_BYTES: u64 = 1_200_000_000;

/// What bounds a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupRule {
    /// Weights of one expert inside a graph.
    pub expert_bytes: u64,
    pub max_graph_bytes: u64,
    /// Most experts in one graph.
    pub max_experts: usize,
}

impl GroupRule {
    /// The source's limit, for experts of this size.
    pub fn new(expert_bytes: u64) -> Self {
        Self { expert_bytes, max_graph_bytes: MAX_GRAPH_BYTES, max_experts: GROUP_SIZES[0] }
    }

    /// The largest group that fits a graph; 1 when not even the smallest does.
    pub fn size(&self) -> usize {
        let fits = self.max_graph_bytes / self.expert_bytes.max(1);
        let allowed = |size: &usize| *size <= self.max_experts && *size as u64 <= fits;
        GROUP_SIZES.into_iter().find(allowed).unwrap_or(1)
    }
}

/// Experts in one graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The experts, most popular first.
    pub experts: Vec<u16>,
    /// Rows of each.
    pub capacity: u32,
}

impl Group {
    /// Rows of the graph, `G·C`.
    pub fn rows(&self) -> u64 {
        self.experts.len() as u64 * u64::from(self.capacity)
    }
}

/// Groups of one layer: hot experts with hot ones, cold with cold, never two tiers in one graph.
pub fn group(counts: &[u64], tiers: &LayerTiers, rule: &GroupRule) -> Vec<Group> {
    let order = rank(counts);
    let of_tier = |tier: &u32| {
        let tier = *tier;
        let experts: Vec<u16> =
            order.iter().copied().filter(|e| tiers.capacity[usize::from(*e)] == tier).collect();
        let cut = experts.chunks(rule.size());
        cut.map(|experts| Group { experts: experts.to_vec(), capacity: tier }).collect::<Vec<_>>()
    };
    tiers.tiers.iter().flat_map(of_tier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiers::capacity::TierRule;

    #[test]
    fn groups_keep_to_their_tier_and_to_the_graph_limit() {
        // Phi-3.5-MoE: 150 MB an expert, so eight fit 1.2 GB and sixteen do not.
        assert_eq!(GroupRule::new(150_000_000).size(), 8);
        assert_eq!(GroupRule::new(10_000_000).size(), 16);
        assert_eq!(GroupRule::new(2_000_000_000).size(), 1);
        let counts: Vec<u64> = (0..16).map(|e| if e < 4 { 40 } else { 12 }).collect();
        let tiers = LayerTiers::of(&counts, &TierRule::new(256, 2));
        let groups = group(&counts, &tiers, &GroupRule::new(150_000_000));
        let sizes: Vec<_> = groups.iter().map(|g| (g.experts.len(), g.capacity)).collect();
        assert_eq!(sizes, [(4, 80), (8, 32), (4, 32)]);
        let mut all: Vec<u16> = groups.into_iter().flat_map(|group| group.experts).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..16));
    }
}
