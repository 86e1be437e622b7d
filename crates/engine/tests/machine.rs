//! The executor against units that sleep, fail, stop and panic: its threads overlap, and
//! nothing is computed twice, left out or copied unused.

use motley_cost::{ComputeCost, Nanos, TransferCost};
use motley_engine::blocks::machine::artificial::{Artificial, Driven};
use motley_engine::blocks::machine::{
    Clock, CopyOrder, Cpu, CpuOrder, Device, DeviceOrder, Executor, ExecutorParts, Flow, Link,
    MachineError, UnitFailed,
};
use motley_sched::Named;
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice, Routed};
use motley_sched::overlap::Overlap;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::strategy::{ByPhase, StrategyChoice, TimelineStrategy, WholeLayers};
use motley_sched::{
    Costs, Homes, Layout, Phase, Routing, Scheduler, SchedulerLimits, SchedulerParts, Strategy,
    TierParts,
};
use motley_sim::drive::drive as simulate;
use motley_sim::world::{DenseCost, World};
use motley_trace::record::FORMAT_VERSION;
use motley_trace::{ExpertKey, Trace, TraceHeader, Visit};

const LAYERS: u16 = 4;
const EXPERTS: u16 = 16;
const TOP_K: u16 = 6;

/// The link slower than the CPU with few tokens, the device four times as fast as either.
fn costs() -> Costs {
    let unit = ComputeCost { launch_us: 20.0, per_token_us: 100.0, floor_us: 400.0 };
    Costs::one_tier(
        ComputeCost { launch_us: 20.0, per_token_us: 5.0, floor_us: 100.0 },
        TransferCost { latency_us: 0.0, per_byte_us: 0.6 },
        Some(Homes {
            units: 1,
            layout: Layout::Whole,
            unit,
            entry_us: 0.0,
            entry_per_token_us: 0.0,
        }),
        1000,
    )
}

fn header() -> TraceHeader {
    TraceHeader {
        version: FORMAT_VERSION,
        model: "made".into(),
        layers: LAYERS,
        experts: EXPERTS,
        k: TOP_K,
    }
}

/// A prompt of `prompt` tokens in one pass and `decoded` tokens, routed at random.
fn trace(prompt: u32, decoded: u32, seed: u64) -> Trace {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut visits = Vec::new();
    let prompts = u32::from(prompt > 0);
    for pass in 0..prompts + decoded {
        let is_prompt = pass < prompts;
        let (tokens, phase) = if is_prompt { (prompt, Phase::Prefill) } else { (1, Phase::Decode) };
        let first = if is_prompt { 0 } else { prompt + pass - prompts };
        for layer in 0..LAYERS {
            let chosen = (0..tokens)
                .flat_map(|_| random.choose_multiple(0..EXPERTS, usize::from(TOP_K)))
                .collect();
            visits.push(Visit {
                pass: u64::from(pass),
                layer,
                phase,
                positions: (first..first + tokens).collect(),
                experts: chosen,
                ..Visit::default()
            });
        }
    }
    Trace { header: header(), visits }
}

fn scheduler(strategy: Box<dyn Strategy>, prefetch: PrefetchChoice, share: f64) -> Scheduler {
    let grid = header().grid();
    let capacity = Capacity::global_share(grid, share);
    Scheduler::new(SchedulerParts {
        costs: costs(),
        tiers: vec![TierParts {
            cache: ExpertCache::new(grid, capacity, PolicyChoice::Lru.build(&header())),
            prefetcher: prefetch.build(grid),
            limits: SchedulerLimits::default(),
        }],
        strategy,
    })
}

/// Every second expert.
fn residents() -> Vec<ExpertKey> {
    let keys = (0..LAYERS).flat_map(|l| (0..EXPERTS).step_by(2).map(move |e| ExpertKey::new(l, e)));
    keys.collect()
}

fn drive(scheduler: Scheduler, trace: &Trace, scale: f64, fails_every: u64) -> Driven {
    let artificial = Artificial {
        scheduler,
        costs: costs(),
        dense: ComputeCost { launch_us: 200.0, per_token_us: 1.0, floor_us: 0.0 },
        pass: Nanos::from_us(300.0),
        residents: &[residents()],
        scale,
        fails_every,
    };
    artificial.drive(trace, &mut |_| Vec::new()).expect("a drive to the end")
}

/// Drives in which lanes may overlap: a machine that is busy with other tests holds threads back, and
/// never makes two of them run at once that would not.
const DRIVES: usize = 20;
/// Times slower than the cost model: an expert on the device takes 2 ms, waking a thread little.
const SLOW: f64 = 16.0;

/// The drive with the most overlap.
fn overlap(strategy: StrategyChoice, trace: &Trace) -> Overlap {
    let mut best = Overlap::default();
    for _ in 0..DRIVES {
        let scheduler = scheduler(strategy.build_whole(), PrefetchChoice::None, 0.5);
        let driven = drive(scheduler, trace, SLOW, 0);
        assert_eq!(driven.wrong_pairs, 0);
        let found = Overlap::of(&driven.spans).expect("both had work");
        if found.while_both_had_work() > best.while_both_had_work() {
            best = found;
        }
        if best.while_both_had_work() >= 0.9 {
            break;
        }
    }
    eprintln!(
        "{}: {:.0} % of the shorter lane, {:.0} % while both had work",
        strategy.name(),
        100.0 * best.of_shorter(),
        100.0 * best.while_both_had_work()
    );
    best
}

/// A static split: what is cached and what is not can both begin at once, so nearly all of the
/// shorter lane runs beside the other.
#[test]
fn the_lanes_of_cpu_and_device_overlap() {
    for made in [trace(64, 0, 1), trace(0, 12, 1)] {
        let overlap = overlap(StrategyChoice::LayerSplit, &made);
        assert!(overlap.of_shorter() >= 0.8, "{overlap:?}");
        assert!(overlap.while_both_had_work() >= 0.8, "{overlap:?}");
    }
}

/// Under H1 the device waits for experts on the link while the CPU computes, by plan; whenever both
/// have an expert they can compute, both do.
#[test]
fn under_timelines_both_compute_when_both_have_work() {
    for made in [trace(64, 0, 1), trace(0, 12, 1)] {
        let overlap = overlap(StrategyChoice::Timelines, &made);
        assert!(overlap.while_both_had_work() >= 0.8, "{overlap:?}");
    }
}

/// All strategies with all prefetchers at four cache sizes: every pair once, no demanded copy in
/// vain; guesses are counted apart.
#[test]
fn every_pair_once_and_no_copy_in_vain() {
    for &strategy in StrategyChoice::ALL {
        for (prefetch, share) in
            PrefetchChoice::ALL.iter().copied().zip([0.0, 0.25, 0.5, 1.0].into_iter().cycle())
        {
            let made = trace(9, 2, 7);
            let scheduler = scheduler(strategy.build_whole(), prefetch, share);
            let driven = drive(scheduler, &made, 0.05, 0);
            let what = format!("{} {} {share}", strategy.name(), prefetch.name());
            let figures = driven.figures;
            let pairs: u64 = made.visits.iter().map(|visit| visit.experts.len() as u64).sum();
            assert_eq!(driven.wrong_pairs, 0, "{what}");
            assert_eq!(figures.routed_pairs, pairs, "{what}");
            assert_eq!(figures.device_pairs + figures.cpu_pairs, pairs, "{what}");
            assert_eq!(figures.demanded_unused, 0, "{what}");
            assert_eq!(figures.demanded_copies, figures.counts.demand_loads, "{what}");
            let launches = figures.counts.tier_computes;
            assert!(figures.launches <= launches, "{what}");
        }
    }
}

/// A disk if `from_disk`, memory with a CPU, and `devices` of different speed.
fn costs_of(from_disk: bool, devices: usize) -> Costs {
    let mut costs = costs().over_devices(devices);
    for (number, tier) in costs.tiers.iter_mut().enumerate() {
        tier.unit.per_token_us *= 1.0 + number as f64;
        tier.entry_us = 30.0;
    }
    match from_disk {
        true => costs.behind_disk(TransferCost { latency_us: 50.0, per_byte_us: 2.0 }),
        false => costs,
    }
}

fn scheduler_of(costs: &Costs, prefetch: PrefetchChoice, shares: &[f64]) -> Scheduler {
    let grid = header().grid();
    let tier = |&share: &f64| TierParts {
        cache: ExpertCache::new(
            grid,
            Capacity::global_share(grid, share),
            PolicyChoice::Lru.build(&header()),
        ),
        prefetcher: prefetch.build(grid),
        limits: SchedulerLimits::default(),
    };
    Scheduler::new(SchedulerParts {
        costs: costs.clone(),
        tiers: shares.iter().map(tier).collect(),
        strategy: StrategyChoice::Timelines.build_whole(),
    })
}

/// Machines of two to six memories, with every prefetcher, with copies that fail and without:
/// every pair once, and no demanded copy to a device in vain.
#[test]
fn several_memories_compute_every_pair_once() {
    for (from_disk, devices) in [(true, 0), (true, 1), (false, 2), (true, 2), (false, 5), (true, 4)]
    {
        for (&prefetch, fails_every) in
            PrefetchChoice::ALL.iter().zip([0, 0, 3].into_iter().cycle())
        {
            let costs = costs_of(from_disk, devices);
            let shares = vec![0.3; costs.tiers.len()];
            let made = trace(9, 6, 7);
            let artificial = Artificial {
                scheduler: scheduler_of(&costs, prefetch, &shares),
                costs,
                dense: ComputeCost { launch_us: 200.0, per_token_us: 1.0, floor_us: 0.0 },
                pass: Nanos::from_us(300.0),
                residents: &vec![Vec::new(); devices],
                scale: 0.05,
                fails_every,
            };
            let driven = artificial.drive(&made, &mut |_| Vec::new()).expect("a drive to the end");
            let what = format!("{from_disk} {devices} {} {fails_every}", prefetch.name());
            let pairs: u64 = made.visits.iter().map(|visit| visit.experts.len() as u64).sum();
            let figures = driven.figures;
            assert_eq!(driven.wrong_pairs, 0, "{what}");
            assert_eq!(figures.device_pairs + figures.cpu_pairs, pairs, "{what}");
            if fails_every == 0 {
                let failed = (figures.demanded_unused, figures.counts.failed_loads);
                assert_eq!(failed, (0, 0), "{what}");
            }
        }
    }
}

/// Machines of two, three, four and six memories: tokens decoded in the time the simulator says,
/// within a tenth. The drive nearest to it counts, as a busy machine only adds.
#[test]
fn the_executor_takes_the_time_the_simulator_says() {
    let dense = ComputeCost { launch_us: 200.0, per_token_us: 1.0, floor_us: 0.0 };
    let pass = Nanos::from_us(300.0);
    for (from_disk, devices) in [(true, 0), (false, 1), (true, 1), (false, 2), (true, 2), (true, 4)]
    {
        let costs = costs_of(from_disk, devices);
        let shares = vec![0.3; costs.tiers.len()];
        let made = trace(0, 12, 5);
        let scheduler = || scheduler_of(&costs, PrefetchChoice::None, &shares);
        let unrouted = DenseCost {
            layer_us: dense.launch_us,
            layer_per_token_us: dense.per_token_us,
            pass_us: pass.as_us(),
        };
        let mut world = World::new(costs.clone(), unrouted);
        let simulated = simulate(&mut made.source(), &mut scheduler(), &mut world, None);
        let simulated = simulated.expect("a drive to the end").wall.as_us();
        let ratio = || {
            let artificial = Artificial {
                scheduler: scheduler(),
                costs: costs.clone(),
                dense,
                pass,
                residents: &vec![Vec::new(); devices],
                scale: 4.0,
                fails_every: 0,
            };
            let driven = artificial.drive(&made, &mut |_| Vec::new()).expect("a drive to the end");
            driven.decode.as_us() / simulated
        };
        let nearest = (0..DRIVES).map(|_| ratio()).find(|ratio| (0.9..1.1).contains(ratio));
        let memories = 1 + costs.tiers.len();
        assert!(nearest.is_some(), "{memories} memories, disk {from_disk}");
        eprintln!(
            "{memories} memories, disk {from_disk}: {:.3} of the simulator",
            nearest.unwrap()
        );
    }
}

/// With nothing to wait for, a layer is one launch and one read-back.
#[test]
fn cached_experts_of_a_layer_are_one_launch() {
    let scheduler = scheduler(StrategyChoice::LayerSplit.build_whole(), PrefetchChoice::None, 0.5);
    let driven = drive(scheduler, &trace(0, 8, 3), 0.5, 0);
    assert!(driven.figures.launches <= driven.figures.blocks);
    assert!(driven.figures.counts.tier_computes > 2 * driven.figures.blocks);
}

#[test]
fn a_long_prompt_streams_and_a_short_one_stays() {
    let by_phase = || -> Box<dyn Strategy> {
        let decode = Box::new(TimelineStrategy::with_fixed_residents());
        Box::new(ByPhase::new(Box::new(WholeLayers::default()), decode))
    };
    let copies = |tokens| {
        let scheduler = scheduler(by_phase(), PrefetchChoice::WholeLayer, 0.25);
        let driven = drive(scheduler, &trace(tokens, 0, 5), 2.0, 0);
        assert_eq!(driven.wrong_pairs, 0);
        driven.figures
    };
    let long = copies(200);
    assert_eq!(long.cpu_pairs, 0);
    assert!(long.guessed_copies > 0, "the next layer comes while this one is computed");
    assert_eq!(copies(2).demanded_copies, 0);
}

#[test]
fn an_expert_that_does_not_come_is_computed_at_home() {
    let scheduler =
        scheduler(StrategyChoice::OnDemand.build_whole(), PrefetchChoice::PreviousToken, 0.25);
    let driven = drive(scheduler, &trace(9, 9, 11), 0.05, 3);
    assert!(driven.figures.counts.failed_loads > 5);
    assert!(driven.figures.cpu_pairs > 5);
    assert_eq!(driven.wrong_pairs, 0);
}

/// What a test's device does at its next launch.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Works,
    Fails,
    Panics,
}

struct Moody(Mood);

impl Device for Moody {
    type Block = ();
    type Rows = u32;

    fn compute(&mut self, (): &(), experts: &[DeviceOrder]) -> Result<(u32, Flow), UnitFailed> {
        match self.0 {
            Mood::Works => Ok((experts.iter().map(|order| order.tokens).sum::<u32>(), Flow::Done)),
            Mood::Fails => {
                self.0 = Mood::Works;
                Err(UnitFailed("device lost".into()))
            }
            Mood::Panics => panic!("on purpose"),
        }
    }
}

struct AtOnce;

impl Link for AtOnce {
    fn copy(&mut self, _order: &CopyOrder) -> Result<(), UnitFailed> {
        Ok(())
    }
}

/// A CPU that stops when asked, and counts.
struct Counting {
    flow: Flow,
    tokens: u32,
}

impl Cpu for Counting {
    fn compute(&mut self, experts: &[CpuOrder]) -> Result<Flow, UnitFailed> {
        self.tokens += experts.iter().map(|order| order.tokens).sum::<u32>();
        Ok(self.flow)
    }
}

fn executor(mood: Mood) -> Executor<Moody> {
    let scheduler = scheduler(StrategyChoice::CpuOnMiss.build_whole(), PrefetchChoice::None, 0.5);
    let executor = Executor::new(ExecutorParts {
        scheduler,
        disk: None,
        devices: vec![(Moody(mood), Box::new(AtOnce))],
        clock: Clock::wall(),
        shown: Vec::new(),
        overlap: true,
        records: false,
    });
    executor.preload(0, &residents()).expect("copies that work");
    executor
}

fn block(executor: &Executor<Moody>, layer: u16, flow: Flow) -> Result<(Flow, u32), MachineError> {
    let routed = Routed { layer, tokens: 1, experts: &[0, 1, 2, 3], ..Routed::default() };
    let routing = Routing { routed, phase: Phase::Decode, predictions: &[] };
    let mut cpu = Counting { flow, tokens: 0 };
    let done = executor.run(&routing, Some(()), &mut cpu)?;
    Ok((done.flow, done.rows.iter().sum::<u32>() + cpu.tokens))
}

#[test]
fn a_cancelled_block_leaves_the_executor_as_it_was() {
    let executor = executor(Mood::Works);
    for layer in 0..LAYERS {
        assert_eq!(
            block(&executor, layer, Flow::Cancelled).map(|done| done.0),
            Ok(Flow::Cancelled)
        );
        assert_eq!(block(&executor, layer, Flow::Done), Ok((Flow::Done, 4)));
    }
}

#[test]
fn a_failed_launch_fails_its_block_and_names_the_device() {
    let executor = executor(Mood::Fails);
    let error = block(&executor, 0, Flow::Done).expect_err("a lost device").to_string();
    assert_eq!(error, "the device failed: device lost");
    assert_eq!(block(&executor, 1, Flow::Done), Ok((Flow::Done, 4)));
}

#[test]
fn a_thread_that_ended_is_an_error_not_a_wait() {
    let executor = executor(Mood::Panics);
    for _ in 0..2 {
        let error = block(&executor, 0, Flow::Done).expect_err("nobody computes");
        assert_eq!(error, MachineError::ThreadEnded("the device"));
    }
}
