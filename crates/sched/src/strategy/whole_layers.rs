//! All absent experts of a layer over the link, or none: many tokens make a layer's transfer
//! worth its while (W7), few are computed in place. The choice is made anew for every layer, from
//! what each way would take; there is no threshold to tune.
//!
//! With a prefetcher that names the next layer ([`WholeLayer`](crate::prefetch::WholeLayer)) the
//! link works on one layer while the units work on the other: double buffering.

use motley_cost::Nanos;

use super::{Strategy, load, near_to_tiers};
use crate::work::{LayerPlan, LayerWork, Share, Unit};

/// Streams a layer or computes it in place, whichever is done sooner.
#[derive(Debug, Default)]
pub struct WholeLayers {
    rest: Vec<u16>,
}

impl WholeLayers {
    /// When all is done if the absent experts `rest` come over the link one after another and
    /// the fast unit takes each as it arrives, after those it has.
    fn streamed(work: &LayerWork<'_>, near: &[u16], rest: &[u16]) -> Nanos {
        let one_load = work.costs.load_time(0, Share::WHOLE);
        let fast =
            |i: u16| work.costs.tier_time(0, work.items[usize::from(i)].tokens, Share::WHOLE);
        let mut here = work.link_free_in(0);
        let mut ends: Nanos = near.iter().map(|&i| fast(i)).sum();
        for &i in rest {
            here += one_load;
            ends = ends.max(here) + fast(i);
        }
        ends
    }

    /// When all is done if the absent experts are computed at home.
    fn in_place(work: &LayerWork<'_>, near: &[u16], rest: &[u16]) -> Nanos {
        let tokens = |i: u16| work.items[usize::from(i)].tokens;
        let fast = near.iter().map(|&i| work.costs.tier_time(0, tokens(i), Share::WHOLE)).sum();
        let mut lanes =
            vec![work.costs.entry_time(Unit::Home(0), work.tokens); work.costs.lanes().into()];
        for &i in rest {
            let lane = work.costs.lane_of(work.items[usize::from(i)].expert);
            lanes[usize::from(lane)] += work.costs.home_time(tokens(i), Share::WHOLE);
        }
        lanes.into_iter().fold(fast, Nanos::max)
    }
}

impl Strategy for WholeLayers {
    fn name(&self) -> &'static str {
        "whole-layers"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        near_to_tiers(work, plan, &mut self.rest);
        let stream = work.costs.lanes() == 0 || {
            let (near, rest) = (&plan.tiers[0].compute, &self.rest);
            Self::streamed(work, near, rest) < Self::in_place(work, near, rest)
        };
        if stream {
            self.rest.sort_unstable_by_key(|&i| work.items[usize::from(i)].expert);
            load(plan, &self.rest);
        } else {
            plan.home.extend_from_slice(&self.rest);
        }
    }

    /// A layer that passes through would send away what decoding needs.
    fn keeps_loaded(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use motley_cost::{ComputeCost, TransferCost};
    use proptest::prelude::{prop_assert, proptest};

    use super::*;
    use crate::work::{Costs, Homes, Layout, Phase, Whereabouts, WorkItem};

    fn costs(home_per_token_us: f64, load_us: f64) -> Costs {
        let unit = ComputeCost { launch_us: 0.0, per_token_us: home_per_token_us, floor_us: 10.0 };
        Costs::one_tier(
            ComputeCost { launch_us: 1.0, per_token_us: 0.1, floor_us: 2.0 },
            TransferCost { latency_us: load_us, per_byte_us: 0.0 },
            Some(Homes {
                units: 1,
                layout: Layout::Whole,
                unit,
                entry_us: 0.0,
                entry_per_token_us: 0.0,
            }),
            1,
        )
    }

    fn plan(costs: &Costs, loads: &[u32], near: usize) -> LayerPlan {
        let nowhere = Whereabouts::default();
        let at = |e| if e < near { nowhere.and_in(0) } else { nowhere };
        let item = |(e, &tokens): (usize, &u32)| WorkItem { expert: e as u16, tokens, at: at(e) };
        let items: Vec<_> = loads.iter().enumerate().map(item).collect();
        let work = LayerWork {
            layer: 0,
            phase: Phase::Prefill,
            tokens: loads.iter().sum(),
            items: &items,
            costs,
            links_free_in: &[],
        };
        let mut plan = LayerPlan::of(1);
        WholeLayers::default().plan(&work, &mut plan);
        plan
    }

    #[test]
    fn few_tokens_stay_and_many_move() {
        let costs = costs(2.0, 100.0);
        assert_eq!(plan(&costs, &[3; 8], 2).home.len(), 6);
        let many = plan(&costs, &[300; 8], 2);
        assert_eq!(many.tiers[0].load, [2, 3, 4, 5, 6, 7]);
        assert!(many.home.is_empty());
    }

    proptest! {
        /// Every expert is planned once, and more tokens never bring a streamed layer back home.
        #[test]
        fn all_or_none_and_monotonous(
            tokens in 1u32..400,
            experts in 1usize..40,
            near in 0usize..40,
            home_us in 0.2..20.0f64,
            load_us in 1.0..300.0f64,
        ) {
            let costs = costs(home_us, load_us);
            let near = near.min(experts);
            let few = plan(&costs, &vec![tokens; experts], near);
            let all = |plan: &LayerPlan| {
                let mut seen: Vec<u16> = plan.tiers[0].compute.iter().chain(&plan.home).copied().collect();
                seen.sort_unstable();
                seen == (0..experts as u16).collect::<Vec<_>>()
            };
            prop_assert!(all(&few));
            prop_assert!(few.tiers[0].load.is_empty() || few.home.is_empty());
            prop_assert!(few.tiers[0].load.len() + few.home.len() == experts - near);
            let many = plan(&costs, &vec![tokens + 100; experts], near);
            prop_assert!(few.tiers[0].load.is_empty() || many.home.is_empty());
        }
    }
}
