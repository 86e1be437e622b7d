//! MoNDE: whole experts on near-data units, the hottest moved to the fast unit so that the link
//! and the units are busy equally long. Its balance knows neither which unit an expert lives on
//! nor activations nor the fast unit's own time (the source of G names these limits).

use super::{Strategy, high_load_first, load, near_to_tiers};
use crate::work::{LayerPlan, LayerWork, Share};

/// Moves `H` experts with `H · T_w = (A - H) · T_n / N`, scaled by `alpha`.
#[derive(Debug)]
pub struct Monde {
    alpha: f64,
    rest: Vec<u16>,
}

impl Default for Monde {
    fn default() -> Self {
        Self::with_alpha(1.0)
    }
}

impl Monde {
    /// `alpha` is the correction MoNDE learns from past profiles; 1 trusts the equation.
    pub fn with_alpha(alpha: f64) -> Self {
        Self { alpha, rest: Vec::new() }
    }

    /// `H`, rounded down to whole experts.
    fn moved(&self, work: &LayerWork<'_>) -> usize {
        let absent = self.rest.len() as f64;
        let lanes = f64::from(work.costs.lanes());
        let near: f64 = self
            .rest
            .iter()
            .map(|&i| work.costs.home_time(work.items[usize::from(i)].tokens, Share::WHOLE))
            .map(|time| time.as_us())
            .sum();
        let (one_near, one_load) =
            (near / absent / lanes, work.costs.load_time(0, Share::WHOLE).as_us());
        (self.alpha * absent * one_near / (one_near + one_load)) as usize
    }
}

impl Strategy for Monde {
    fn name(&self) -> &'static str {
        "monde"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        near_to_tiers(work, plan, &mut self.rest);
        if self.rest.is_empty() {
            return;
        }
        high_load_first(work, &mut self.rest);
        let moved = if work.costs.lanes() == 0 { self.rest.len() } else { self.moved(work) };
        let (hot, cold) = self.rest.split_at(moved.min(self.rest.len()));
        load(plan, hot);
        plan.home.extend_from_slice(cold);
    }

    fn keeps_loaded(&self) -> bool {
        false
    }
}
