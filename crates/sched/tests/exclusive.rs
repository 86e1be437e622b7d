//! RAM before a disk and a GPU below it, an expert in one of them: who may take whose place there.

use motley_cost::{ComputeCost, Nanos, TransferCost};
use motley_sched::cache::lfu::Lfu;
use motley_sched::cache::{Capacity, ExpertCache, Routed};
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::strategy::TimelineStrategy;
use motley_sched::{
    Action, Costs, Phase, Routing, Scheduler, SchedulerLimits, SchedulerParts, Tier, TierParts,
};
use motley_trace::{ExpertGrid, ExpertKey};

const GRID: ExpertGrid = ExpertGrid { layers: 1, experts: 6 };
const RAM: u16 = 0;
const GPU: u16 = 1;

fn key(expert: u16) -> ExpertKey {
    ExpertKey::new(0, expert)
}

/// RAM with `ram` slots and a slow CPU, a GPU with one slot: what is in RAM is worth copying.
fn scheduler(ram: u32) -> Scheduler {
    with_cpu(ram, 100.0, PrefetchChoice::None)
}

/// The same with another CPU, and something that is brought to the GPU early.
fn with_cpu(ram: u32, cpu_us: f64, prefetch: PrefetchChoice) -> Scheduler {
    let link = |us| TransferCost { latency_us: us, per_byte_us: 0.0 };
    let disk = Tier::beside_home(ComputeCost::constant(cpu_us), link(1000.0));
    let below = Tier::beside_home(ComputeCost::constant(1.0), link(10.0));
    let gpu = Tier { parent: Some(RAM), exclusive: true, ..below };
    let tier = |slots, prefetch: PrefetchChoice| TierParts {
        cache: ExpertCache::new(GRID, Capacity::Global { slots }, Box::new(Lfu::new(GRID))),
        prefetcher: prefetch.build(GRID),
        limits: SchedulerLimits::default(),
    };
    Scheduler::new(SchedulerParts {
        costs: Costs { home: None, tiers: vec![disk, gpu], expert_bytes: 1 },
        tiers: vec![tier(ram, PrefetchChoice::None), tier(1, prefetch)],
        strategy: Box::new(TimelineStrategy::default()),
    })
}

/// Runs one layer of one token to its end, everything at once; the copies to the GPU it asked for.
fn route(scheduler: &mut Scheduler, experts: &[u16]) -> usize {
    let routed = Routed { layer: 0, tokens: 1, experts, ..Routed::default() };
    run(scheduler, Phase::Decode, routed)
}

fn run(scheduler: &mut Scheduler, phase: Phase, routed: Routed<'_>) -> usize {
    scheduler.on_routed(Nanos::ZERO, &Routing { routed, phase, predictions: &[] });
    let mut copies = 0;
    while let Some(action) = scheduler.poll_action(Nanos::ZERO) {
        match action {
            Action::Load { tier, key, .. } => {
                copies += usize::from(tier == GPU);
                scheduler.on_loaded(Nanos::ZERO, tier, key, true).expect("no fault");
            }
            Action::Compute { key, unit, .. } => scheduler.on_computed(Nanos::ZERO, key, unit),
            Action::Exchange { .. } | Action::Release { .. } => {}
        }
    }
    assert!(scheduler.layer_is_done());
    copies
}

fn is_in(scheduler: &Scheduler, tier: u16, expert: u16) -> bool {
    scheduler.cache(tier).contains(key(expert))
}

#[test]
fn a_copy_does_not_displace_what_is_nowhere_else_while_ram_has_room() {
    let mut scheduler = scheduler(2);
    scheduler.preload(RAM, &[key(1)]);
    scheduler.preload(GPU, &[key(0)]);
    assert_eq!(route(&mut scheduler, &[1]), 1, "the CPU is slow");
    assert!(is_in(&scheduler, GPU, 0), "its next use would read the disk");
    assert!(is_in(&scheduler, RAM, 1) && !is_in(&scheduler, GPU, 1));
}

#[test]
fn a_copy_displaces_what_is_used_less_than_all_of_ram_and_leaves_ram() {
    let mut scheduler = scheduler(2);
    scheduler.preload(RAM, &[key(1), key(2)]);
    scheduler.preload(GPU, &[key(0)]);
    route(&mut scheduler, &[1, 2]);
    let on_gpu: Vec<u16> = (0..GRID.experts).filter(|&e| is_in(&scheduler, GPU, e)).collect();
    assert!(on_gpu == [1] || on_gpu == [2], "{on_gpu:?}");
    assert!(!is_in(&scheduler, RAM, on_gpu[0]), "one copy is enough");
}

#[test]
fn one_used_more_than_some_of_ram_keeps_its_place() {
    let mut scheduler = scheduler(2);
    scheduler.preload(RAM, &[key(1), key(2)]);
    scheduler.preload(GPU, &[key(0)]);
    route(&mut scheduler, &[0]);
    route(&mut scheduler, &[1]);
    route(&mut scheduler, &[1]);
    assert!(is_in(&scheduler, GPU, 0), "2 was never used, and would leave RAM first");
    assert!(is_in(&scheduler, RAM, 1) && is_in(&scheduler, RAM, 2));
}

#[test]
fn the_most_used_of_a_prompt_are_on_the_gpu_when_decode_begins() {
    // A quick CPU: nothing is copied on demand.
    let mut scheduler = with_cpu(2, 1.0, PrefetchChoice::PrefillCounted);
    scheduler.preload(GPU, &[key(0)]);
    let mut prompt = |experts: &[u16], loads: &[u32]| {
        let routed = Routed { layer: 0, tokens: 9, experts, loads, ..Routed::default() };
        assert_eq!(run(&mut scheduler, Phase::Prefill, routed), 0, "counted, not copied");
    };
    prompt(&[3], &[9]);
    prompt(&[1, 2], &[2, 4]);
    prompt(&[1, 2], &[2, 4]);
    assert_eq!(route(&mut scheduler, &[1]), 1);
    assert!(is_in(&scheduler, GPU, 2), "3 was used more, and has left RAM for the disk");
    assert!(!is_in(&scheduler, GPU, 0) && !is_in(&scheduler, RAM, 2));
}
