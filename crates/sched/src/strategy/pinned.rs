//! kTransformers' policy: the most used experts are pinned in the fast tier; a miss is computed
//! at home in decode and loaded in prefill (HybriMoE, Table I).

use motley_trace::{ExpertGrid, ExpertKey};

use super::{Strategy, load, near_to_tiers};
use crate::work::{LayerPlan, LayerWork, Phase};

/// Fixed residents; misses by phase.
#[derive(Debug, Default)]
pub struct Pinned {
    rest: Vec<u16>,
}

impl Pinned {
    /// The experts to preload: the most used of each layer, equally many per layer.
    ///
    /// `uses` counts past activations, dense by [`ExpertGrid::index`].
    pub fn residents(grid: ExpertGrid, uses: &[u64], slots_per_layer: u32) -> Vec<ExpertKey> {
        let mut keys = Vec::new();
        for layer in 0..grid.layers {
            let mut experts: Vec<u16> = (0..grid.experts).collect();
            let used = |expert: u16| uses[grid.index(ExpertKey::new(layer, expert))];
            experts.sort_by_key(|&expert| (std::cmp::Reverse(used(expert)), expert));
            let most = experts.into_iter().take(slots_per_layer as usize);
            keys.extend(most.map(|expert| ExpertKey::new(layer, expert)));
        }
        keys
    }
}

impl Strategy for Pinned {
    fn name(&self) -> &'static str {
        "pinned"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        near_to_tiers(work, plan, &mut self.rest);
        if work.phase == Phase::Prefill || work.costs.lanes() == 0 {
            load(plan, &self.rest);
        } else {
            plan.home.extend_from_slice(&self.rest);
        }
    }

    fn keeps_loaded(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_pins_its_own_most_used() {
        let grid = ExpertGrid { layers: 2, experts: 3 };
        let keys = Pinned::residents(grid, &[1, 9, 4, 7, 7, 8], 2);
        let expected = [(0, 1), (0, 2), (1, 2), (1, 0)].map(|(l, e)| ExpertKey::new(l, e));
        assert_eq!(keys, expected);
    }
}
