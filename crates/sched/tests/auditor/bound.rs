//! Analytic lower bounds of one layer's makespan: what no schedule can beat. For
//! tests: never to decide.

use motley_cost::Nanos;

use motley_sched::{Costs, LayerWork, Share, WorkItem};

/// No schedule of whole experts can be shorter: the longest item at its best, and
/// [`work_bound`].
pub(crate) fn lower_bound(work: &LayerWork<'_>) -> Nanos {
    let longest = work.items.iter().map(|item| cheapest(item, work.costs)).max();
    work_bound(work).max(longest.unwrap_or(Nanos::ZERO))
}

/// No schedule can be shorter, split experts or not: all work at its cheapest, spread evenly over
/// every unit and link.
pub(crate) fn work_bound(work: &LayerWork<'_>) -> Nanos {
    let total: Nanos = work.items.iter().map(|item| cheapest(item, work.costs)).sum();
    let tiers = work.costs.tiers.len() as u64;
    Nanos(total.0 / (u64::from(work.costs.lanes()) + 2 * tiers))
}

fn cheapest(item: &WorkItem, costs: &Costs) -> Nanos {
    let tiers = 0..costs.tiers.len() as u16;
    let there = tiers
        .map(|tier| arrival(item, costs, tier) + costs.tier_time(tier, item.tokens, Share::WHOLE));
    let home = costs.home_time(item.tokens, Share::WHOLE);
    there.fold(home, Nanos::min)
}

/// Transfers until an item is in a tier, those under way not counted.
fn arrival(item: &WorkItem, costs: &Costs, tier: u16) -> Nanos {
    if item.at.is_near(tier) {
        return Nanos::ZERO;
    }
    let before = costs.parent(tier).map_or(Nanos::ZERO, |parent| arrival(item, costs, parent));
    before + costs.load_time(tier, Share::WHOLE)
}
