//! The board on which the CPU, a device and the link share the experts of a block, under every
//! order of the three threads: each expert is computed once, no buffer is filled while it is
//! computed from, a block that is given up leaves nothing behind, and nobody waits for ever.
//! `cargo xtask check loom` explores all of them; as ordinary tests, a sample.

use motley_cost::{ComputeCost, TransferCost};
use motley_engine::blocks::machine::{
    Clock, CopyOrder, Cpu, CpuOrder, Device, DeviceOrder, Executor, ExecutorParts, Flow, Link,
    MachineError, UnitFailed,
};
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice, Routed};
use motley_sched::prefetch::{Prediction, PrefetchChoice};
use motley_sched::strategy::StrategyChoice;
use motley_sched::{
    Costs, Homes, Layout, Named, Phase, Routing, Scheduler, SchedulerLimits, SchedulerParts,
    TierParts,
};
use motley_testkit::explore::{Holders, explore};
use motley_trace::record::FORMAT_VERSION;
use motley_trace::{ExpertKey, TraceHeader};
use std::sync::{Arc, Mutex};

const LAYERS: u16 = 2;
const EXPERTS: u16 = 3;
const CACHE_SLOTS: usize = 2;
const STAGING_SLOTS: u16 = 2;

/// What a scenario does.
#[derive(Clone, Copy)]
struct Scenario {
    strategy: StrategyChoice,
    prefetch: PrefetchChoice,
    /// What the CPU says to the first block.
    first: Flow,
    /// Whether copies arrive, preloaded ones apart.
    copies: bool,
    /// Launches of the device that work before one fails.
    launches: u32,
}

const PLAIN: Scenario = Scenario {
    strategy: StrategyChoice::OnDemand,
    prefetch: PrefetchChoice::None,
    first: Flow::Done,
    copies: true,
    launches: u32::MAX,
};

/// The device's memory, as both its thread and the link see it.
struct Memory {
    holders: Holders,
    contents: Mutex<Vec<Option<ExpertKey>>>,
}

impl Memory {
    fn new() -> Self {
        let buffers = CACHE_SLOTS + usize::from(STAGING_SLOTS);
        Self { holders: Holders::new(buffers), contents: Mutex::new(vec![None; buffers]) }
    }

    fn put(&self, order: &CopyOrder, content: Option<ExpertKey>) {
        let buffer = order.buffer as usize;
        self.holders.hold(buffer, || self.contents.lock().expect("no panic")[buffer] = content);
    }
}

struct Unit {
    memory: Arc<Memory>,
    launches: u32,
}

impl Device for Unit {
    type Block = ();
    /// Experts computed.
    type Rows = Vec<u16>;

    fn compute(&mut self, (): &(), orders: &[DeviceOrder]) -> Result<(Vec<u16>, Flow), UnitFailed> {
        let mut rows = Vec::new();
        let Some(left) = self.launches.checked_sub(1) else {
            self.launches = u32::MAX;
            return Err(UnitFailed("device lost".into()));
        };
        self.launches = left;
        for order in orders {
            let buffer = order.buffer as usize;
            let content = || self.memory.contents.lock().expect("no panic")[buffer];
            assert_eq!(self.memory.holders.hold(buffer, content), Some(order.key));
            rows.push(order.key.expert);
        }
        Ok((rows, Flow::Done))
    }
}

struct Wire {
    memory: Arc<Memory>,
    works: bool,
}

impl Link for Wire {
    fn copy(&mut self, order: &CopyOrder) -> Result<(), UnitFailed> {
        self.memory.put(order, self.works.then_some(order.key));
        if self.works { Ok(()) } else { Err(UnitFailed("cut".into())) }
    }

    fn preload(&mut self, order: &CopyOrder) -> Result<(), UnitFailed> {
        self.memory.put(order, Some(order.key));
        Ok(())
    }
}

struct Cores {
    flow: Flow,
    computed: Vec<u16>,
}

impl Cpu for Cores {
    fn compute(&mut self, orders: &[CpuOrder]) -> Result<Flow, UnitFailed> {
        self.computed.extend(orders.iter().map(|order| order.key.expert));
        Ok(self.flow)
    }
}

/// A device four times as fast as the CPU, and a link between them.
fn costs() -> Costs {
    let unit = ComputeCost { launch_us: 20.0, per_token_us: 100.0, floor_us: 400.0 };
    let (layout, entry_us, entry_per_token_us) = (Layout::Whole, 0.0, 0.0);
    Costs::one_tier(
        ComputeCost { launch_us: 20.0, per_token_us: 5.0, floor_us: 100.0 },
        TransferCost { latency_us: 0.0, per_byte_us: 0.3 },
        Some(Homes { units: 1, layout, unit, entry_us, entry_per_token_us }),
        1000,
    )
}

fn scheduler(scenario: Scenario) -> Scheduler {
    let (version, model) = (FORMAT_VERSION, "made".into());
    let header = TraceHeader { version, model, layers: LAYERS, experts: EXPERTS, k: EXPERTS };
    let grid = header.grid();
    let share = CACHE_SLOTS as f64 / f64::from(LAYERS * EXPERTS);
    let policy = PolicyChoice::Lru.build(&header);
    Scheduler::new(SchedulerParts {
        costs: costs(),
        tiers: vec![TierParts {
            cache: ExpertCache::new(grid, Capacity::global_share(grid, share), policy),
            prefetcher: scenario.prefetch.build(grid),
            limits: SchedulerLimits {
                staging_slots: STAGING_SLOTS,
                prefetch_slots: 1,
                ..SchedulerLimits::default()
            },
        }],
        strategy: scenario.strategy.build_whole(),
    })
}

fn executor(scenario: Scenario) -> Executor<Unit> {
    let memory = Arc::new(Memory::new());
    let executor = Executor::new(ExecutorParts {
        scheduler: scheduler(scenario),
        disk: None,
        devices: vec![(
            Unit { memory: Arc::clone(&memory), launches: scenario.launches },
            Box::new(Wire { memory, works: scenario.copies }),
        )],
        shown: Vec::new(),
        overlap: true,
        // A clock that stands still: what is decided follows from the order of threads alone.
        clock: Clock::scaled(f64::INFINITY),
        records: false,
    });
    let residents = [ExpertKey::new(0, 0), ExpertKey::new(1, 0)];
    executor.preload(0, &residents).expect("copies that work");
    executor
}

/// One block of all experts; those computed, sorted.
fn block(
    executor: &Executor<Unit>,
    layer: u16,
    flow: Flow,
) -> Result<(Flow, Vec<u16>), MachineError> {
    let experts: Vec<u16> = (0..EXPERTS).collect();
    let routed = Routed { layer, tokens: 1, experts: &experts, ..Routed::default() };
    // Only a prefetcher that is asked for looks at it.
    let next = [Prediction { layer: layer + 1, loads: vec![(2, 1)] }];
    let predictions = if layer + 1 < LAYERS { &next[..] } else { &[] };
    let routing = Routing { routed, phase: Phase::Decode, predictions };
    let mut cpu = Cores { flow, computed: Vec::new() };
    let done = executor.run(&routing, Some(()), &mut cpu)?;
    let mut computed: Vec<u16> = done.rows.into_iter().flatten().collect();
    computed.extend(cpu.computed);
    computed.sort_unstable();
    Ok((done.flow, computed))
}

/// Two blocks; the second is whole whatever became of the first.
fn two_blocks(scenario: Scenario) {
    let executor = executor(scenario);
    match block(&executor, 0, scenario.first) {
        Ok((Flow::Done, computed)) => assert_eq!(computed, [0, 1, 2]),
        Ok((Flow::Cancelled, computed)) => {
            assert!(computed.windows(2).all(|pair| pair[0] < pair[1]), "{computed:?}");
        }
        Err(error) => assert!(matches!(error, MachineError::Unit { unit: "the device", .. })),
    }
    let (flow, computed) = block(&executor, 1, Flow::Done).expect("units that work");
    assert_eq!((flow, computed), (Flow::Done, vec![0, 1, 2]));
    let figures = executor.figures();
    assert_eq!((figures.blocks, figures.routed_pairs), (2, 6));
    let guesses = u64::from(scenario.prefetch != PrefetchChoice::None);
    assert_eq!(figures.counts.guessed_loads, guesses);
}

fn explore_two_blocks(name: &str, preemptions: usize, scenario: Scenario) {
    let name = format!("board: {name}, {}", scenario.strategy.name());
    explore(&name, preemptions, move || two_blocks(scenario));
}

#[test]
fn every_expert_is_computed_once() {
    for strategy in [StrategyChoice::OnDemand, StrategyChoice::CpuOnMiss, StrategyChoice::Timelines]
    {
        explore_two_blocks("two blocks", 2, Scenario { strategy, ..PLAIN });
    }
}

#[test]
fn guesses_arrive_whenever_they_do() {
    let (strategy, prefetch) = (StrategyChoice::CpuOnMiss, PrefetchChoice::NextLayer);
    explore_two_blocks("a guess", 2, Scenario { strategy, prefetch, ..PLAIN });
}

#[test]
fn a_cancelled_block_leaves_nothing_behind() {
    for strategy in [StrategyChoice::CpuOnMiss, StrategyChoice::Timelines] {
        let first = Flow::Cancelled;
        explore_two_blocks("cancelled", 2, Scenario { strategy, first, ..PLAIN });
    }
}

#[test]
fn an_expert_that_does_not_come_is_computed_at_home() {
    explore_two_blocks("no copy arrives", 2, Scenario { copies: false, ..PLAIN });
}

#[test]
fn a_launch_that_fails_ends_its_block_alone() {
    explore_two_blocks("device lost", 2, Scenario { launches: 0, ..PLAIN });
}

#[test]
fn an_executor_is_dropped_at_any_time() {
    explore("board: dropped", 3, || drop(executor(PLAIN)));
}
