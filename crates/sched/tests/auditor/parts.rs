//! The machine and the minds of a case.

use motley_cost::{ComputeCost, TransferCost};
use motley_sched::prefetch::{
    NextLayer, NoPrefetch, Prefetcher, PrefillCounted, PreviousToken, Refill, WholeLayer,
};
use motley_sched::strategy::{
    Balanced, ByPhase, CpuOnMiss, LayerSplit, Monde, OnDemand, PartsStrategy, Pinned,
    TimelineStrategy, WholeLayers,
};
use motley_sched::{Costs, Homes, Layout, Strategy, Tier};
use motley_trace::ExpertGrid;

use super::Case;

pub(super) fn costs(case: &Case) -> Costs {
    let home = |units, layout| {
        let unit = ComputeCost { launch_us: 0.5, per_token_us: case.home_us, floor_us: 1.0 };
        Some(Homes { units, layout, unit, entry_us: 1.5, entry_per_token_us: 0.0 })
    };
    let home = match case.regime {
        0 => home(1, Layout::Whole),
        1 => None,
        2 => home(3, Layout::Whole),
        _ => home(3, Layout::Split),
    };
    let link = TransferCost { latency_us: 0.5, per_byte_us: case.load_us / 1024.0 };
    let mut costs = Costs::one_tier(ComputeCost::constant(case.fast_us), link, home, 1024);
    let mut random = fastrand::Rng::with_seed(case.seed ^ 0x5eed);
    for tier in 1..case.tiers {
        let below = random.u16(0..=tier);
        let [unit, link] = [(); 2].map(|()| 0.2 + 2.0 * random.f64());
        costs.tiers.push(Tier {
            parent: below.checked_sub(1),
            unit: ComputeCost::constant(case.fast_us * unit),
            link: TransferCost { latency_us: 0.5, per_byte_us: case.load_us * link / 1024.0 },
            entry_us: 1.0,
            entry_per_token_us: 0.1,
            exclusive: case.seed.is_multiple_of(3),
        });
    }
    costs
}

pub(super) fn strategy(number: usize) -> Box<dyn Strategy> {
    match number {
        0 => Box::new(OnDemand::default()),
        1 => Box::new(CpuOnMiss::default()),
        2 => Box::new(LayerSplit::default()),
        3 => Box::new(Pinned::default()),
        4 => Box::new(Monde::default()),
        5 => Box::new(Balanced::new(true, true)),
        6 => Box::new(Balanced::new(true, false)),
        7 => Box::new(PartsStrategy::default()),
        8 => Box::new(LayerSplit::offloading(8)),
        9 => Box::new(WholeLayers::default()),
        10 => Box::new(ByPhase::new(
            Box::new(WholeLayers::default()),
            Box::new(TimelineStrategy::default()),
        )),
        _ => Box::new(TimelineStrategy::default()),
    }
}

pub(super) fn prefetcher(number: usize, grid: ExpertGrid) -> Box<dyn Prefetcher> {
    match number {
        0 => Box::new(NoPrefetch),
        1 => Box::new(PreviousToken::new(grid)),
        2 => Box::new(NextLayer::default()),
        3 => Box::new(PrefillCounted::new(grid)),
        4 => Box::new(Refill::after(Box::new(NextLayer::default()))),
        _ => Box::new(WholeLayer::before(grid, Box::new(NextLayer::decode_only(1)))),
    }
}
