//! H1 with parts of experts (G1, G2): while the home unit computes the layer's last absent expert,
//! the idle link brings a part of it, as much as lets both sides end together. Decode only, where
//! one or two absent experts are too few for the link to take a whole one.

use motley_cost::Nanos;

use super::Strategy;
use crate::timeline::Timelines;
use crate::work::{LayerPlan, LayerWork, Phase, Presence, Share, Unit, Waits};

/// Halvings in the search for a share: to one 256th.
const HALVINGS: u32 = 8;

/// Timelines, then one part.
#[derive(Debug, Default)]
pub struct PartsStrategy {
    timelines: Timelines,
    /// The plan without whole transfers.
    at_home: LayerPlan,
    /// What the fast unit still has to do while a plan is timed: (item, there at).
    waiting: Vec<(u16, Nanos)>,
}

/// A part for the fast unit and when the layer would end.
#[derive(Debug, Clone, Copy)]
struct FastPart {
    item: u16,
    share: Share,
    ends: Nanos,
}

impl Strategy for PartsStrategy {
    fn name(&self) -> &'static str {
        "timelines+parts"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        self.timelines.plan(work, plan);
        // Parts are of one tier and its home unit.
        let one_of_each = work.costs.lanes() == 1 && work.costs.tiers.len() == 1;
        if work.phase == Phase::Prefill || !one_of_each {
            return;
        }
        let mut at_home = std::mem::take(&mut self.at_home);
        leave_at_home(work, &mut at_home);
        let whole = self.fast_end(work, plan).max(home_end(work, plan));
        let added = self.best_part(work, plan);
        let instead = self.best_part(work, &at_home);
        let ends = |part: Option<FastPart>| part.map_or(Nanos::NEVER, |part| part.ends);
        if ends(instead) < ends(added).min(whole) {
            std::mem::swap(plan, &mut at_home);
            take(plan, instead);
        } else if ends(added) < whole {
            take(plan, added);
        }
        self.at_home = at_home;
    }
}

impl PartsStrategy {
    /// The share of the last absent expert at home with which both sides end together.
    fn best_part(&mut self, work: &LayerWork<'_>, plan: &LayerPlan) -> Option<FastPart> {
        let absent = |&i: &u16| work.items[usize::from(i)].presence() == Presence::Absent;
        let item = plan.home.iter().rev().copied().find(absent)?;
        let tokens = work.items[usize::from(item)].tokens;
        let fast_end = self.fast_end(work, plan);
        let others = home_end(work, plan) - work.costs.home_time(tokens, Share::WHOLE);
        let link = work.link_free_in(0) + loads_end(work, plan.tiers[0].load.len());
        let fast = |share: Share| {
            let here = link + work.costs.load_time(0, share);
            fast_end.max(here) + work.costs.tier_time(0, tokens, share)
        };
        let home = |share: Share| others + work.costs.home_time(tokens, share.rest());
        // More on the fast side ends later there and sooner at home.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            let share = Share::nearest(middle);
            if fast(share) < home(share) { low = middle } else { high = middle }
        }
        let share = Share::nearest(low);
        let is_part = share != Share::NONE && share != Share::WHOLE;
        is_part.then(|| FastPart { item, share, ends: fast(share).max(home(share)) })
    }

    /// When the fast unit is done with what `plan` gives it: the first in order that is there.
    fn fast_end(&mut self, work: &LayerWork<'_>, plan: &LayerPlan) -> Nanos {
        self.waiting.clear();
        for &i in &plan.tiers[0].compute {
            let loaded = plan.tiers[0].load.iter().position(|&load| load == i);
            let here = match (loaded, work.items[usize::from(i)].presence()) {
                (Some(at), _) => work.link_free_in(0) + loads_end(work, at + 1),
                (None, Presence::Arriving(here)) => here,
                (None, _) => Nanos::ZERO,
            };
            self.waiting.push((i, here));
        }
        let mut now = Nanos::ZERO;
        while !self.waiting.is_empty() {
            let there = self.waiting.iter().position(|&(_, here)| here <= now);
            let next = there.or_else(|| {
                let first = self.waiting.iter().enumerate().min_by_key(|(_, (_, here))| *here);
                first.map(|(at, _)| at)
            });
            let (i, here) = self.waiting.remove(next.unwrap_or(0));
            let tokens = work.items[usize::from(i)].tokens;
            now = now.max(here) + work.costs.tier_time(0, tokens, Share::WHOLE);
        }
        now
    }
}

fn loads_end(work: &LayerWork<'_>, loads: usize) -> Nanos {
    Nanos(work.costs.load_time(0, Share::WHOLE).0 * loads as u64)
}

fn home_end(work: &LayerWork<'_>, plan: &LayerPlan) -> Nanos {
    let time = |&i: &u16| work.costs.home_time(work.items[usize::from(i)].tokens, Share::WHOLE);
    let all: Nanos = plan.home.iter().map(time).sum();
    if plan.home.is_empty() { all } else { all + work.costs.entry_time(Unit::Home(0), work.tokens) }
}

/// What is near on the fast unit, everything else at home, low load first.
fn leave_at_home(work: &LayerWork<'_>, plan: &mut LayerPlan) {
    plan.clear(1);
    for (i, item) in work.items.iter().enumerate() {
        let fast = matches!(work.waits_at(item), Waits::Tier(_));
        if fast { plan.tiers[0].compute.push(i as u16) } else { plan.home.push(i as u16) }
    }
    super::high_load_first(work, &mut plan.tiers[0].compute);
    plan.home
        .sort_by_key(|&i| (work.items[usize::from(i)].tokens, work.items[usize::from(i)].expert));
}

fn take(plan: &mut LayerPlan, part: Option<FastPart>) {
    if let Some(FastPart { item, share, .. }) = part {
        plan.tiers[0].load.push(item);
        plan.tiers[0].compute.push(item);
        plan.split = Some((item, share));
    }
}

#[cfg(test)]
mod tests {
    use motley_cost::{ComputeCost, TransferCost};

    use super::*;
    use crate::work::{Costs, Homes, Layout, Whereabouts, WorkItem};

    fn costs() -> Costs {
        let home = Homes {
            units: 1,
            layout: Layout::Whole,
            unit: ComputeCost::constant(200.0),
            entry_us: 0.0,
            entry_per_token_us: 0.0,
        };
        Costs::one_tier(
            ComputeCost::constant(10.0),
            TransferCost { latency_us: 0.0, per_byte_us: 590.0 / 4096.0 },
            Some(home),
            4096,
        )
    }

    fn plan(near: usize, absent: usize, phase: Phase) -> LayerPlan {
        let nowhere = Whereabouts::default();
        let at = |e| if e < near { nowhere.and_in(0) } else { nowhere };
        let items: Vec<_> = (0..near + absent)
            .map(|e| WorkItem { expert: e as u16, tokens: 1, at: at(e) })
            .collect();
        let (costs, mut plan) = (costs(), LayerPlan::of(1));
        let work = LayerWork {
            layer: 0,
            phase,
            tokens: 1,
            items: &items,
            costs: &costs,
            links_free_in: &[],
        };
        PartsStrategy::default().plan(&work, &mut plan);
        plan
    }

    #[test]
    fn one_absent_expert_is_shared_by_both_sides() {
        // 600 x = 200 (1 - x): a quarter over the link, and 150 us instead of 200.
        let found = plan(2, 1, Phase::Decode);
        assert_eq!((&found.tiers[0].load[..], &found.home[..]), (&[2][..], &[2][..]));
        assert_eq!(found.split, Some((2, Share::nearest(0.25 - 1.0 / 256.0))));
    }

    #[test]
    fn two_absent_experts_share_the_second() {
        // 600 x = 200 + 200 (1 - x): a half, and 300 us instead of 400.
        let found = plan(0, 2, Phase::Decode);
        assert_eq!((&found.tiers[0].load[..], &found.home[..]), (&[1][..], &[0, 1][..]));
        let (_, share) = found.split.expect("a part");
        assert!((share.fraction() - 0.5).abs() < 0.01, "{share:?}");
    }

    /// Several GPUs beside the CPU: what one of them has is computed there.
    #[test]
    fn machines_of_several_tiers_are_planned_as_by_timelines() {
        let costs = costs().over_devices(2);
        let nowhere = Whereabouts::default();
        let item = |(expert, at)| WorkItem { expert, tokens: 1, at };
        let items = [(0, nowhere.and_in(1)), (1, nowhere.and_in(0)), (2, nowhere)].map(item);
        let (layer, phase, tokens) = (0, Phase::Decode, 1);
        let work =
            LayerWork { layer, phase, tokens, items: &items, costs: &costs, links_free_in: &[] };
        let (mut found, mut by_timelines) = (LayerPlan::of(2), LayerPlan::of(2));
        PartsStrategy::default().plan(&work, &mut found);
        Timelines::default().plan(&work, &mut by_timelines);
        assert_eq!(found, by_timelines);
        assert_eq!(found.tiers[1].compute, [0]);
    }

    #[test]
    fn prompts_and_what_is_all_near_are_planned_as_by_timelines() {
        assert_eq!(plan(3, 0, Phase::Decode).split, None);
        assert_eq!(plan(2, 3, Phase::Prefill).split, None);
    }
}
