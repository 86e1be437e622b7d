//! Fiddler's decision: an absent expert is computed at home when that is done sooner than
//! bringing it over and computing it there. Each expert is judged alone.

use super::{Strategy, load, near_to_tiers};
use crate::work::{LayerPlan, LayerWork, Share};

/// Compares `home(tokens)` with `load + fast(tokens)` per expert; residents are fixed.
#[derive(Debug, Default)]
pub struct CpuOnMiss {
    rest: Vec<u16>,
    moved: Vec<u16>,
}

impl Strategy for CpuOnMiss {
    fn name(&self) -> &'static str {
        "cpu-on-miss"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        near_to_tiers(work, plan, &mut self.rest);
        self.moved.clear();
        for &i in &self.rest {
            let tokens = work.items[usize::from(i)].tokens;
            let there = work.costs.load_time(0, Share::WHOLE);
            let there = there + work.costs.tier_time(0, tokens, Share::WHOLE);
            let home = work.costs.home_time(tokens, Share::WHOLE);
            if home <= there { plan.home.push(i) } else { self.moved.push(i) }
        }
        load(plan, &self.moved);
    }

    fn keeps_loaded(&self) -> bool {
        false
    }
}
