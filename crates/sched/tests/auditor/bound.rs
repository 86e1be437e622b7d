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
/// the fast unit, the link and every home lane.
pub(crate) fn work_bound(work: &LayerWork<'_>) -> Nanos {
    let total: Nanos = work.items.iter().map(|item| cheapest(item, work.costs)).sum();
    Nanos(total.0 / (u64::from(work.costs.lanes()) + 2))
}

fn cheapest(item: &WorkItem, costs: &Costs) -> Nanos {
    let fast = costs.fast_time(item.tokens, Share::WHOLE);
    let near = if item.is_near() { fast } else { fast + costs.load_time(Share::WHOLE) };
    near.min(costs.home_time(item.tokens, Share::WHOLE))
}
