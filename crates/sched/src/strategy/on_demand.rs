//! Every absent expert is loaded and computed on the fast unit; home units idle.

use super::{Strategy, load, near_to_tiers};
use crate::selective::{LoadMode, load_mode};
use crate::work::{LayerPlan, LayerWork};

/// Loads high loads first; when a pass needs nearly every expert anyway (W7), in the order of
/// the file, so that neighbouring reads join.
#[derive(Debug, Default)]
pub struct OnDemand {
    rest: Vec<u16>,
}

impl Strategy for OnDemand {
    fn name(&self) -> &'static str {
        "on-demand"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        near_to_tiers(work, plan, &mut self.rest);
        let absent = self.rest.len();
        if load_mode(absent, work.items.len()) == LoadMode::All {
            self.rest.sort_unstable_by_key(|&i| work.items[usize::from(i)].expert);
        }
        load(plan, &self.rest);
    }
}
