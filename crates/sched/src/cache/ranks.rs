//! Ranks of all experts and the lowest among those that may leave.
//! A tournament tree over a dense array; it knows nothing of slots or of why a rank is what it is.

use motley_trace::{ExpertGrid, ExpertKey};

/// How much an expert deserves to stay; the lowest leaves first. Ties leave by key order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u64);

impl Rank {
    /// The rank of an expert nobody has ranked.
    pub const LOWEST: Self = Self(0);
    /// The highest rank there is.
    pub const HIGHEST: Self = Self(ABSENT - 1);

    /// A rank from a counter. Values above [`Self::HIGHEST`] become it.
    pub const fn from_u64(value: u64) -> Self {
        if value < ABSENT { Self(value) } else { Self::HIGHEST }
    }

    /// A rank from a number, keeping its order (−∞ lowest). NaN becomes [`Self::LOWEST`].
    pub fn from_f64(value: f64) -> Self {
        if value.is_nan() {
            return Self::LOWEST;
        }
        let bits = value.to_bits();
        let ordered = if bits >> 63 == 0 { bits | (1 << 63) } else { !bits };
        Self::from_u64(ordered)
    }
}

/// Marks a leaf that cannot leave: not resident, or leased.
const ABSENT: u64 = u64::MAX;

/// A rank for every expert, and the lowest-ranked *candidate* per layer and overall.
///
/// Layers and experts are padded to powers of two so that each layer is one subtree:
/// node 1 is the root, node `layers_padded + layer` a layer's root, leaves follow. Setting a rank
/// costs O(log n) and stops early when a subtree's lowest is unchanged; finding the lowest
/// descends O(log n). At 94 × 256 the tree holds 64 Ki nodes of 8 bytes.
#[derive(Clone, Debug)]
pub struct Ranks {
    grid: ExpertGrid,
    /// Rank of each key, candidate or not; dense by [`ExpertGrid::index`].
    ranks: Vec<Rank>,
    /// Lowest candidate rank below each node, [`ABSENT`] when there is none.
    lowest: Vec<u64>,
    layers_padded: usize,
    experts_padded: usize,
}

impl Ranks {
    /// All keys of `grid` at [`Rank::LOWEST`], none a candidate.
    pub fn new(grid: ExpertGrid) -> Self {
        let layers_padded = usize::from(grid.layers).next_power_of_two();
        let experts_padded = usize::from(grid.experts).next_power_of_two();
        Self {
            grid,
            ranks: vec![Rank::LOWEST; grid.len()],
            lowest: vec![ABSENT; 2 * layers_padded * experts_padded],
            layers_padded,
            experts_padded,
        }
    }

    /// The keys that can be ranked.
    pub fn grid(&self) -> ExpertGrid {
        self.grid
    }

    /// The rank of `key`.
    pub fn get(&self, key: ExpertKey) -> Rank {
        self.ranks[self.grid.index(key)]
    }

    /// The ranks of every expert of `layer`.
    pub(super) fn of_layer(&self, layer: u16) -> &[Rank] {
        let first = self.grid.index(ExpertKey::new(layer, 0));
        &self.ranks[first..first + usize::from(self.grid.experts)]
    }

    /// Gives `key` a rank, whether it is resident or not.
    pub fn set(&mut self, key: ExpertKey, rank: Rank) {
        let index = self.grid.index(key);
        self.ranks[index] = rank;
        let leaf = self.leaf(key);
        if self.lowest[leaf] != ABSENT {
            self.write_leaf(leaf, rank.0);
        }
    }

    /// Gives every expert of `layer` a rank, O(experts): for policies that rank a layer anew at
    /// each visit. `ranks` holds one per expert.
    pub fn set_layer(&mut self, layer: u16, ranks: &[Rank]) {
        let first = self.grid.index(ExpertKey::new(layer, 0));
        self.ranks[first..first + usize::from(self.grid.experts)].copy_from_slice(ranks);
        let leaf = self.leaf(ExpertKey::new(layer, 0));
        for (lowest, rank) in self.lowest[leaf..].iter_mut().zip(ranks) {
            *lowest = if *lowest == ABSENT { ABSENT } else { rank.0 };
        }
        let (mut start, mut width) = (leaf / 2, self.experts_padded / 2);
        while width >= 1 {
            let (upper, below) = self.lowest.split_at_mut(2 * start);
            let nodes = &mut upper[start..start + width];
            for (node, children) in nodes.iter_mut().zip(below.chunks_exact(2)) {
                *node = children[0].min(children[1]);
            }
            (start, width) = (start / 2, width / 2);
        }
        self.lift(self.layers_padded + usize::from(layer));
    }

    /// Whether `key` may leave.
    pub fn is_candidate(&self, key: ExpertKey) -> bool {
        self.lowest[self.leaf(key)] != ABSENT
    }

    /// Lets `key` leave when its rank is the lowest.
    pub(super) fn insert_candidate(&mut self, key: ExpertKey) {
        let rank = self.get(key);
        self.write_leaf(self.leaf(key), rank.0);
    }

    /// Protects `key` from leaving.
    pub(super) fn remove_candidate(&mut self, key: ExpertKey) {
        self.write_leaf(self.leaf(key), ABSENT);
    }

    /// The lowest-ranked candidate of all layers.
    pub fn lowest(&self) -> Option<ExpertKey> {
        self.descend(1)
    }

    /// The lowest-ranked candidate of one layer.
    pub fn lowest_in(&self, layer: u16) -> Option<ExpertKey> {
        self.descend(self.layers_padded + usize::from(layer))
    }

    fn leaf(&self, key: ExpertKey) -> usize {
        (self.layers_padded + usize::from(key.layer)) * self.experts_padded
            + usize::from(key.expert)
    }

    fn write_leaf(&mut self, leaf: usize, value: u64) {
        self.lowest[leaf] = value;
        self.lift(leaf);
    }

    /// Carries a changed node's lowest up until nothing changes.
    fn lift(&mut self, changed: usize) {
        let mut node = changed / 2;
        while node >= 1 {
            let below = self.lowest[2 * node].min(self.lowest[2 * node + 1]);
            if self.lowest[node] == below {
                return;
            }
            self.lowest[node] = below;
            node /= 2;
        }
    }

    fn descend(&self, from: usize) -> Option<ExpertKey> {
        let wanted = self.lowest[from];
        if wanted == ABSENT {
            return None;
        }
        let first_leaf = self.layers_padded * self.experts_padded;
        let mut node = from;
        while node < first_leaf {
            node *= 2;
            if self.lowest[node] != wanted {
                node += 1;
            }
        }
        let position = node - first_leaf;
        Some(ExpertKey {
            layer: (position / self.experts_padded) as u16,
            expert: (position % self.experts_padded) as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order_as_ranks() {
        let values = [f64::NEG_INFINITY, -2.5, -0.0, 0.0, 1e-300, 3.0, f64::INFINITY];
        let ranks: Vec<Rank> = values.iter().map(|&value| Rank::from_f64(value)).collect();
        assert!(ranks.is_sorted());
        assert_eq!(Rank::from_f64(f64::NAN), Rank::LOWEST);
        assert_eq!(Rank::from_u64(u64::MAX), Rank::HIGHEST);
    }

    #[test]
    fn lowest_is_found_per_layer_and_overall() {
        let mut ranks = Ranks::new(ExpertGrid { layers: 3, experts: 5 });
        assert_eq!(ranks.lowest(), None);
        for (layer, expert, rank) in [(0, 4, 7), (1, 0, 3), (1, 2, 9), (2, 3, 5)] {
            let key = ExpertKey::new(layer, expert);
            ranks.set(key, Rank::from_u64(rank));
            ranks.insert_candidate(key);
        }
        assert_eq!(ranks.lowest(), Some(ExpertKey::new(1, 0)));
        assert_eq!(ranks.lowest_in(2), Some(ExpertKey::new(2, 3)));
        ranks.remove_candidate(ExpertKey::new(1, 0));
        assert_eq!(ranks.lowest(), Some(ExpertKey::new(2, 3)));
        ranks.set(ExpertKey::new(2, 3), Rank::from_u64(100));
        assert_eq!(ranks.lowest(), Some(ExpertKey::new(0, 4)));
        assert_eq!(ranks.lowest_in(1), Some(ExpertKey::new(1, 2)));
        ranks.set_layer(1, &[4, 3, 2, 1, 0].map(Rank::from_u64));
        assert_eq!(ranks.lowest(), Some(ExpertKey::new(1, 2)));
        ranks.set_layer(0, &[9, 9, 9, 9, 1].map(Rank::from_u64));
        assert_eq!(ranks.lowest(), Some(ExpertKey::new(0, 4)));
    }
}
