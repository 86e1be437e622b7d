//! G2, G3 and G5 as a strategy for near-data units that share every expert (G1).
//!
//! Decode: resident experts go to the fast unit, at most `E_max` of them (G5); when none of the
//! active ones is resident, `E_g` experts are brought over (G2), the last one in part. Prefill:
//! `E_g` by G3, high loads first.

use super::{Strategy, high_load_first};
use crate::balance::Balance;
use crate::work::{LayerPlan, LayerWork, Phase, Share, Unit};

/// Balances the link and the fast unit against the near-data units.
#[derive(Debug)]
pub struct Balanced {
    /// Whether absent experts are brought over (G2, G3); without it only residents leave home.
    pub moves_absent: bool,
    /// Whether the last expert may be moved in part; otherwise `E_g` is rounded down.
    pub splits: bool,
    near: Vec<u16>,
    rest: Vec<u16>,
}

impl Balanced {
    /// With the given parts switched on.
    pub fn new(moves_absent: bool, splits: bool) -> Self {
        Self { moves_absent, splits, near: Vec::new(), rest: Vec::new() }
    }

    fn equation(work: &LayerWork<'_>) -> Balance {
        let costs = work.costs;
        let active = work.items.len().max(1) as u32;
        let pairs: u32 = work.items.iter().map(|item| item.tokens).sum();
        let mean = pairs.div_ceil(active).max(1);
        let units = costs.home.map_or(1, |home| home.units);
        // The entry is (N + 1) · T_a of the whole pass; the equations count single rows.
        let rows = f64::from(units + 1) * f64::from(work.tokens.max(1));
        Balance {
            fast_us: costs.tier_time(0, mean, Share::WHOLE).as_us(),
            near_us: costs.home_time(mean, Share::WHOLE).as_us(),
            weights_us: costs.load_time(0, Share::WHOLE).as_us(),
            activation_us: costs.entry_time(Unit::Home(0), work.tokens).as_us() / rows,
            units,
            active: active as u16,
        }
    }

    /// `E_g` absent experts over the link, the rest at home.
    fn move_absent(&self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        let equation = Self::equation(work);
        let experts = match work.phase {
            Phase::Decode => equation.decode(),
            Phase::Prefill => equation.prefill(work.tokens),
        };
        let whole = (experts as usize).min(self.rest.len());
        plan.tiers[0].load.extend_from_slice(&self.rest[..whole]);
        plan.tiers[0].compute.extend_from_slice(&self.rest[..whole]);
        plan.home.extend_from_slice(&self.rest[whole..]);
        let share = Share::nearest(experts.fract());
        if self.splits && whole < self.rest.len() && share != Share::NONE {
            self.split(self.rest[whole], share, plan);
        }
    }

    /// Moves a part of one expert; the other part stays in `plan.home`.
    fn split(&self, item: u16, share: Share, plan: &mut LayerPlan) {
        plan.tiers[0].load.push(item);
        plan.tiers[0].compute.push(item);
        if share == Share::WHOLE {
            plan.home.retain(|&other| other != item);
        } else {
            plan.split = Some((item, share));
        }
    }
}

impl Strategy for Balanced {
    fn name(&self) -> &'static str {
        "balanced"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        let all = 0..work.items.len() as u16;
        let is_near = |i: &u16| work.items[usize::from(*i)].is_near();
        self.near.clear();
        self.near.extend(all.clone().filter(is_near));
        self.rest.clear();
        self.rest.extend(all.filter(|i| !is_near(i)));
        high_load_first(work, &mut self.near);
        high_load_first(work, &mut self.rest);
        if work.costs.lanes() == 0 {
            plan.tiers[0].compute.extend_from_slice(&self.near);
            plan.tiers[0].load.extend_from_slice(&self.rest);
            plan.tiers[0].compute.extend_from_slice(&self.rest);
            return;
        }
        if self.near.is_empty() && self.moves_absent {
            self.move_absent(work, plan);
            return;
        }
        let most = Self::equation(work).most_resident().round() as usize;
        let (stay, go_home) = self.near.split_at(self.near.len().min(most.max(1)));
        plan.tiers[0].compute.extend_from_slice(stay);
        plan.home.extend_from_slice(go_home);
        plan.home.extend_from_slice(&self.rest);
    }

    fn keeps_loaded(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use motley_cost::{ComputeCost, TransferCost};

    use super::*;
    use crate::work::{Costs, Homes, Layout, Whereabouts, WorkItem};

    fn costs() -> Costs {
        Costs::one_tier(
            ComputeCost::constant(10.0),
            TransferCost { latency_us: 0.0, per_byte_us: 150.0 / 4096.0 },
            Some(Homes {
                units: 4,
                layout: Layout::Split,
                unit: ComputeCost::constant(100.0),
                entry_us: 10.0,
                entry_per_token_us: 0.0,
            }),
            4096,
        )
    }

    fn plan(resident: usize) -> LayerPlan {
        let nowhere = Whereabouts::default();
        let at = |e| if e < resident { nowhere.and_in(0) } else { nowhere };
        let items: Vec<_> =
            (0..8).map(|e| WorkItem { expert: e as u16, tokens: 1, at: at(e) }).collect();
        let costs = costs();
        let work = LayerWork {
            layer: 0,
            phase: Phase::Decode,
            tokens: 1,
            items: &items,
            costs: &costs,
            links_free_in: &[],
        };
        let mut plan = LayerPlan::of(1);
        Balanced::new(true, true).plan(&work, &mut plan);
        plan
    }

    #[test]
    fn nothing_resident_moves_one_expert_and_a_fifth() {
        // The case worked out by hand in `balance`: E_g = 212.5 / 177.5 = 1.197.
        let plan = plan(0);
        assert_eq!((&plan.tiers[0].load[..], plan.home.len()), (&[0, 1][..], 7));
        assert_eq!(plan.split, Some((1, Share::nearest(0.197))));
    }

    #[test]
    fn residents_beyond_the_balance_go_home() {
        assert_eq!(plan(3).tiers[0].compute, [0, 1, 2]);
        let many = plan(8);
        assert_eq!((many.tiers[0].compute.len(), many.home.len()), (6, 2), "E_max is 6");
        assert!(many.tiers[0].load.is_empty());
    }
}
