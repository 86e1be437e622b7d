//! Plans by hand, and how near the greedy ones are to the best.

use motley_cost::{ComputeCost, TransferCost};

use super::*;
use crate::work::{Costs, Homes, Layout, Phase, Tier, Whereabouts, WorkItem};

/// The units of HybriMoE section IV-B: the fast unit takes 1 whatever the load, the home unit
/// 1 per token, a transfer 3. One unit is a microsecond.
fn example_costs() -> Costs {
    Costs::one_tier(
        ComputeCost::constant(1.0),
        TransferCost { latency_us: 3.0, per_byte_us: 0.0 },
        Some(Homes {
            units: 1,
            layout: Layout::Whole,
            unit: ComputeCost { launch_us: 0.0, per_token_us: 1.0, floor_us: 0.0 },
            entry_us: 0.0,
            entry_per_token_us: 0.0,
        }),
        1,
    )
}

fn plan(items: &[WorkItem], costs: &Costs) -> (Nanos, LayerPlan) {
    let work =
        LayerWork { layer: 0, phase: Phase::Prefill, tokens: 8, items, costs, links_free_in: &[] };
    let mut plan = LayerPlan::of(1);
    let mut timelines = Timelines::default();
    let makespan = timelines.plan(&work, &mut plan);
    assert_eq!(makespan, timelines.makespan(&work));
    (makespan, plan)
}

fn item(expert: u16, tokens: u32, presence: Presence) -> WorkItem {
    let nowhere = Whereabouts::default();
    let at = match presence {
        Presence::Absent => nowhere,
        Presence::Arriving(here) => nowhere.and_coming(0, here),
        Presence::Resident => nowhere.and_in(0),
    };
    WorkItem { expert, tokens, at }
}

/// H1, HybriMoE section IV-B: the best plan computes a cached low-load expert on the CPU
/// while an uncached high-load one is on its way to the GPU.
#[test]
fn a_cached_low_load_goes_home_while_an_absent_high_load_is_transferred() {
    use Presence::{Absent, Resident};
    let names = ["A", "B", "C", "D", "E", "F"];
    let items = [
        item(0, 5, Resident),
        item(1, 4, Resident),
        item(2, 6, Absent),
        item(3, 1, Absent),
        item(4, 1, Resident),
        item(5, 3, Resident),
    ];
    let (makespan, plan) = plan(&items, &example_costs());
    let named = |list: &[u16]| list.iter().map(|&i| names[usize::from(i)]).collect::<String>();
    assert_eq!(named(&plan.home), "DE", "uncached low load, then cached low load");
    assert_eq!(named(&plan.tiers[0].load), "C", "uncached high load");
    assert_eq!(named(&plan.tiers[0].compute), "ABFC", "high load first, the transferred one joins");
    assert_eq!(makespan, Nanos::from_us(4.0));
    assert_eq!(makespan, shortest(&items, &example_costs()), "no allocation is shorter");
}

/// Tries every allocation of items to fast or home, with H1's orders on each lane.
fn shortest(items: &[WorkItem], costs: &Costs) -> Nanos {
    (0..1u32 << items.len()).map(|fast| makespan_of(items, costs, fast)).min().unwrap()
}

fn makespan_of(items: &[WorkItem], costs: &Costs, fast: u32) -> Nanos {
    let (mut home, mut unit, mut link) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| (!items[i].is_near(), std::cmp::Reverse(items[i].tokens)));
    for i in order {
        if fast >> i & 1 == 0 {
            home += costs.home_time(items[i].tokens, Share::WHOLE);
            continue;
        }
        if !items[i].is_near() {
            link += costs.load_time(0, Share::WHOLE);
        }
        let ready = if items[i].is_near() { Nanos::ZERO } else { link };
        unit = unit.max(ready) + costs.tier_time(0, items[i].tokens, Share::WHOLE);
    }
    home.max(unit)
}

#[test]
fn greedy_is_near_the_best_allocation() {
    let costs = example_costs();
    let (mut worst, mut sum, mut cases) = (1.0f64, 0.0, 0.0);
    for seed in 0..500u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let items: Vec<_> = (0..8u16)
            .map(|expert| {
                let here = next(2) == 0;
                let presence = if here { Presence::Resident } else { Presence::Absent };
                item(expert, 1 + next(8) as u32, presence)
            })
            .collect();
        let ratio = plan(&items, &costs).0.0 as f64 / shortest(&items, &costs).0 as f64;
        worst = worst.max(ratio);
        sum += ratio;
        cases += 1.0;
    }
    assert!(sum / cases < 1.15, "on average {} of the best", sum / cases);
    assert!(worst < 2.0, "at worst {worst} of the best");
}

#[test]
fn without_home_units_everything_absent_is_loaded() {
    let costs = Costs { home: None, ..example_costs() };
    let items = [item(0, 1, Presence::Absent), item(1, 4, Presence::Absent)];
    let (makespan, plan) = plan(&items, &costs);
    assert_eq!((&plan.tiers[0].load[..], plan.home.len()), (&[1, 0][..], 0));
    assert_eq!(makespan, Nanos::from_us(7.0), "two transfers of 3 and one computation of 1");
}

#[test]
fn a_slow_link_is_left_alone() {
    let link = TransferCost { latency_us: 50.0, per_byte_us: 0.0 };
    let mut costs = example_costs();
    costs.tiers[0].link = link;
    let items = [item(0, 1, Presence::Absent), item(1, 9, Presence::Absent)];
    let (makespan, plan) = plan(&items, &costs);
    assert!(plan.tiers[0].load.is_empty(), "{plan:?}");
    assert_eq!(makespan, Nanos::from_us(10.0));
}

/// A disk, RAM whose unit takes 2 per token, and a device below it that takes 1.
fn three_memories() -> Costs {
    let cost = |per_token_us| ComputeCost { launch_us: 0.0, per_token_us, floor_us: 0.0 };
    let link = |latency_us| TransferCost { latency_us, per_byte_us: 0.0 };
    let mut costs = Costs::one_tier(cost(2.0), link(10.0), None, 1);
    let device = Tier::beside_home(ComputeCost::constant(1.0), link(3.0));
    costs.tiers.push(Tier { parent: Some(0), exclusive: true, ..device });
    costs
}

#[test]
fn what_is_on_disk_passes_memory_on_its_way_to_the_device() {
    let nowhere = Whereabouts::default();
    let of = |expert, tokens, at| WorkItem { expert, tokens, at };
    // Heavy and on disk: 10 to memory, 3 to the device and 1 there, not 20 in memory.
    let items = [of(0, 10, nowhere), of(1, 1, nowhere.and_in(0)), of(2, 4, nowhere.and_in(1))];
    let (makespan, plan) = plan(&items, &three_memories());
    assert_eq!([&plan.tiers[0].load, &plan.tiers[1].load], [&[0], &[0]]);
    assert_eq!((&plan.tiers[0].compute[..], &plan.tiers[1].compute[..]), (&[1][..], &[2, 0][..]));
    assert_eq!(makespan, Nanos::from_us(14.0));
}

#[test]
fn two_devices_share_what_memory_has() {
    let mut costs = three_memories();
    costs.tiers.push(costs.tiers[1]);
    let in_memory = Whereabouts::default().and_in(0);
    let items =
        [2, 4, 5].map(|tokens| WorkItem { expert: tokens, tokens: tokens.into(), at: in_memory });
    let (makespan, plan) = plan(&items, &costs);
    let counts = plan.tiers.iter().map(|tier| tier.compute.len()).collect::<Vec<_>>();
    assert_eq!((counts, makespan), (vec![1, 1, 1], Nanos::from_us(4.0)));
}

#[test]
fn an_expert_on_its_way_is_waited_for() {
    let costs = Costs { home: None, ..example_costs() };
    let items = [item(0, 1, Presence::Arriving(Nanos::from_us(2.0)))];
    assert_eq!(plan(&items, &costs).0, Nanos::from_us(3.0));
}
