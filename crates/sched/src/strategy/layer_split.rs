//! llama.cpp's static split: the experts of some layers live in the fast tier, all others are
//! computed at home. Nothing is loaded, unless large batches are set to be: llama.cpp copies the
//! experts of a layer at home to the GPU, for that batch only, when it has 32 tokens or more.

use motley_trace::{ExpertGrid, ExpertKey};

use super::{Strategy, load, near_to_tiers};
use crate::work::{LayerPlan, LayerWork, Phase};

/// Residents on the fast unit, the rest at home.
#[derive(Debug, Default)]
pub struct LayerSplit {
    /// Tokens of a prompt's pass from which the rest is loaded.
    load_from_tokens: Option<u32>,
    rest: Vec<u16>,
}

impl LayerSplit {
    /// One that loads what is not resident for prompt passes of at least `tokens`.
    pub fn offloading(tokens: u32) -> Self {
        Self { load_from_tokens: Some(tokens), ..Self::default() }
    }

    /// The experts to preload: whole layers from the last backwards (as `-ngl` counts them), as
    /// many as `slots` hold.
    pub fn residents(grid: ExpertGrid, slots: u32) -> Vec<ExpertKey> {
        let layers = (slots / u32::from(grid.experts.max(1))).min(u32::from(grid.layers)) as u16;
        let experts = |layer| (0..grid.experts).map(move |expert| ExpertKey::new(layer, expert));
        (grid.layers - layers..grid.layers).flat_map(experts).collect()
    }
}

impl Strategy for LayerSplit {
    fn name(&self) -> &'static str {
        "layer-split"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        near_to_tiers(work, plan, &mut self.rest);
        let is_large = self.load_from_tokens.is_some_and(|from| work.tokens >= from);
        if work.costs.lanes() == 0 || (is_large && work.phase == Phase::Prefill) {
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
    fn only_whole_layers_are_resident() {
        let keys = LayerSplit::residents(ExpertGrid { layers: 4, experts: 8 }, 19);
        assert_eq!(keys.len(), 16);
        assert_eq!((keys[0], keys[15]), (ExpertKey::new(2, 0), ExpertKey::new(3, 7)));
    }
}
