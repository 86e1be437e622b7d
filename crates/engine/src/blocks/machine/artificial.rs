//! A machine that does not exist: units that sleep for what the cost model says they take, behind
//! the same traits as real ones, and drives of recorded routing over them. The executor cannot
//! tell the difference, so overlap and speed-ups are those of its own threads and queues.

use super::executor::{Executor, ExecutorParts};
use super::figures::{MachineError, MachineFigures};
use super::units::{
    Arrivals, CopyOrder, Cpu, CpuOrder, Device, DeviceOrder, Disk, Flow, Landed, Link, UnitFailed,
};
use crate::blocks::clock::Clock;
use motley_cost::{ComputeCost, Nanos};
use motley_sched::cache::RoutedBuffer;
use motley_sched::prefetch::Prediction;
use motley_sched::spans::Spans;
use motley_sched::{Costs, Phase, Purpose, Routing, Scheduler, Share, Unit};
use motley_store::FilledExpert;
use motley_trace::{ExpertKey, Trace, Visit};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a drive is made of.
pub struct Artificial<'a> {
    pub scheduler: Scheduler,
    /// What experts and copies take. Without home units the first tier is filled from a disk.
    pub costs: Costs,
    /// What everything else of a layer takes, by tokens of the pass.
    pub dense: ComputeCost,
    /// What a pass takes besides its layers.
    pub pass: Nanos,
    /// Experts on each device before the first pass.
    pub residents: &'a [Vec<ExpertKey>],
    /// How many times slower than the cost model all of it runs, so that waking a thread costs
    /// next to nothing.
    pub scale: f64,
    /// Every how manyth copy fails; 0 is never.
    pub fails_every: u64,
}

/// What a drive came to. Times are the cost model's, whatever the scale.
#[derive(Debug, Clone)]
pub struct Driven {
    /// Time of prompts.
    pub prefill: Nanos,
    /// Time of decoded tokens.
    pub decode: Nanos,
    /// Passes that decoded.
    pub decoded: u64,
    /// Of both, time in which the driver's thread slept longer than asked: the machine's
    /// doing, not the executor's.
    pub late: Nanos,
    /// Routed (token, expert) pairs that were not computed exactly once, whole.
    pub wrong_pairs: u64,
    /// The executor's own sums.
    pub figures: MachineFigures,
    pub spans: Spans,
}

/// Predictions made at each layer of one pass, nearest layer first; may be empty.
pub type PredictPass<'a> = &'a mut dyn FnMut(&[Visit]) -> Vec<Vec<Prediction>>;

impl Artificial<'_> {
    /// Drives the executor through `trace`, pass by pass.
    pub fn drive(self, trace: &Trace, predict: PredictPass<'_>) -> Result<Driven, MachineError> {
        let (costs, dense, pass_time) = (self.costs, self.dense, self.pass);
        let clock = Clock::scaled(self.scale);
        let first = u16::from(costs.home.is_none());
        let lanes = |tier: u16| {
            let unit = SleepingUnit { tier, costs: costs.clone(), clock };
            let fails_every = self.fails_every;
            let link = SleepingLink { tier, costs: costs.clone(), clock, copies: 0, fails_every };
            (unit, Box::new(link) as Box<dyn Link>)
        };
        let disk = || Box::new(SleepingDisk::new(costs.clone(), clock)) as Box<dyn Disk>;
        let executor = Executor::new(ExecutorParts {
            scheduler: self.scheduler,
            disk: costs.home.is_none().then(disk),
            devices: (first..costs.tiers.len() as u16).map(lanes).collect(),
            clock,
            shown: Vec::new(),
            overlap: true,
            records: true,
        });
        for (device, keys) in self.residents.iter().enumerate() {
            executor.preload(device, keys)?;
        }
        let mut driver =
            Driver { executor: &executor, costs, clock, wrong_pairs: 0, late: Nanos::ZERO };
        let mut buffer = RoutedBuffer::new(&trace.header);
        let (mut prefill, mut decode, mut decoded) = (Nanos::ZERO, Nanos::ZERO, 0);
        for pass in trace.visits.chunk_by(|a, b| a.pass == b.pass) {
            let begun = clock.now();
            let predicted = predict(pass);
            for (at, visit) in pass.iter().enumerate() {
                driver.sleep(dense.time(visit.tokens() as u32));
                let predictions = predicted.get(at).map_or(&[][..], Vec::as_slice);
                driver.block(visit, predictions, &mut buffer)?;
            }
            driver.sleep(pass_time);
            let took = clock.now().since(begun);
            match pass[0].phase {
                Phase::Prefill => prefill += took,
                Phase::Decode => (decode, decoded) = (decode + took, decoded + 1),
            }
        }
        let Driver { wrong_pairs, late, .. } = driver;
        let (figures, spans) = (executor.figures(), executor.take_spans().unwrap_or_default());
        Ok(Driven { prefill, decode, decoded, late, wrong_pairs, figures, spans })
    }
}

struct Driver<'a> {
    executor: &'a Executor<SleepingUnit>,
    costs: Costs,
    clock: Clock,
    wrong_pairs: u64,
    late: Nanos,
}

impl Driver<'_> {
    fn sleep(&mut self, time: Nanos) {
        self.late += self.clock.sleep_until(self.clock.now() + time);
    }

    fn block(
        &mut self,
        visit: &Visit,
        predictions: &[Prediction],
        buffer: &mut RoutedBuffer,
    ) -> Result<(), MachineError> {
        let routed = buffer.fill(visit);
        let expected: Tally = (0..routed.experts.len())
            .map(|index| (routed.experts[index], (1.0, routed.load(index))))
            .collect();
        let mut cpu = SleepingCpu {
            costs: self.costs.clone(),
            clock: self.clock,
            computed: Tally::new(),
            late: Nanos::ZERO,
        };
        let routing = Routing { routed, phase: visit.phase, predictions };
        let done = self.executor.run(&routing, Some(()), &mut cpu)?;
        self.late += cpu.late;
        let mut computed = cpu.computed;
        for (&expert, &(part, tokens)) in done.rows.iter().flatten() {
            add(&mut computed, expert, part, tokens);
        }
        let wrong = expected.iter().filter(|(expert, how)| computed.get(expert) != Some(how));
        self.wrong_pairs += wrong.map(|(_, (_, tokens))| u64::from(*tokens)).sum::<u64>();
        self.wrong_pairs += (computed.len() > expected.len()) as u64;
        Ok(())
    }
}

/// By expert: how much of it was computed, and for how many tokens.
pub type Tally = BTreeMap<u16, (f64, u32)>;

fn add(tally: &mut Tally, expert: u16, part: f64, tokens: u32) {
    let so_far = tally.entry(expert).or_default();
    *so_far = (so_far.0 + part, tokens);
}

/// A device that sleeps.
struct SleepingUnit {
    tier: u16,
    costs: Costs,
    clock: Clock,
}

impl Device for SleepingUnit {
    type Block = ();
    type Rows = Tally;

    fn compute(&mut self, (): &(), experts: &[DeviceOrder]) -> Result<(Tally, Flow), UnitFailed> {
        let begun = self.clock.now();
        let unit = Unit::Tier(self.tier);
        let time = |order: &DeviceOrder| {
            let entry = order.enters.map(|tokens| self.costs.entry_time(unit, tokens));
            let time = self.costs.unit_time(unit, order.tokens, order.share);
            entry.unwrap_or_default() + time
        };
        let all: Nanos = experts.iter().map(time).sum();
        self.clock.sleep_until(begun + all);
        let mut rows = Tally::new();
        experts.iter().for_each(|o| add(&mut rows, o.key.expert, o.share.fraction(), o.tokens));
        Ok((rows, Flow::Done))
    }
}

/// A link that sleeps.
struct SleepingLink {
    tier: u16,
    costs: Costs,
    clock: Clock,
    copies: u64,
    fails_every: u64,
}

impl Link for SleepingLink {
    fn copy(&mut self, order: &CopyOrder) -> Result<(), UnitFailed> {
        self.clock.sleep_until(self.clock.now() + self.costs.load_time(self.tier, order.share));
        self.copies += 1;
        match self.fails_every > 0 && self.copies.is_multiple_of(self.fails_every) {
            true => Err(UnitFailed(format!("copy {} fails by request", self.copies))),
            false => Ok(()),
        }
    }

    /// As in the simulator, what is there before the first pass costs nothing.
    fn preload(&mut self, _order: &CopyOrder) -> Result<(), UnitFailed> {
        Ok(())
    }
}

/// A CPU that sleeps.
struct SleepingCpu {
    costs: Costs,
    clock: Clock,
    computed: Tally,
    late: Nanos,
}

impl Cpu for SleepingCpu {
    fn compute(&mut self, experts: &[CpuOrder]) -> Result<Flow, UnitFailed> {
        let begun = self.clock.now();
        let unit = if self.costs.home.is_some() { Unit::Home(0) } else { Unit::Tier(0) };
        let entry = |order: &CpuOrder| {
            order.enters.map_or(Nanos::ZERO, |tokens| self.costs.entry_time(unit, tokens))
        };
        let time =
            |order: &CpuOrder| entry(order) + self.costs.unit_time(unit, order.tokens, order.share);
        let all: Nanos = experts.iter().map(time).sum();
        self.late += self.clock.sleep_until(begun + all);
        for order in experts {
            add(&mut self.computed, order.key.expert, order.share.fraction(), order.tokens);
        }
        Ok(Flow::Done)
    }
}

/// A disk that sleeps: one read after another, as in the simulator.
struct SleepingDisk {
    costs: Costs,
    clock: Clock,
    free: Nanos,
    reads: Arc<Mutex<VecDeque<(ExpertKey, Nanos)>>>,
}

impl SleepingDisk {
    fn new(costs: Costs, clock: Clock) -> Self {
        Self { costs, clock, free: Nanos::ZERO, reads: Arc::default() }
    }

    fn reads(&self) -> MutexGuard<'_, VecDeque<(ExpertKey, Nanos)>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for SleepingDisk {
    fn load(&mut self, key: ExpertKey, _purpose: Purpose) -> Result<(), UnitFailed> {
        let begins = self.free.max(self.clock.now());
        self.free = begins + self.costs.load_time(0, Share::WHOLE);
        let ends = self.free;
        self.reads().push_back((key, ends));
        Ok(())
    }

    fn poll(&mut self) -> Option<Landed> {
        let now = self.clock.now();
        let (key, _) = self.reads().pop_front_if(|(_, ends)| *ends <= now)?;
        Some(Landed { key, error: None })
    }

    fn is_under_way(&self) -> bool {
        !self.reads().is_empty()
    }

    fn arrivals(&self) -> Arc<dyn Arrivals> {
        Arc::new(SleepingArrivals { clock: self.clock, reads: Arc::clone(&self.reads) })
    }

    fn bytes(&self, _key: ExpertKey) -> Option<FilledExpert> {
        None
    }

    fn release(&mut self, _key: ExpertKey) {}
}

/// Sleeps until the first read has ended.
struct SleepingArrivals {
    clock: Clock,
    reads: Arc<Mutex<VecDeque<(ExpertKey, Nanos)>>>,
}

impl Arrivals for SleepingArrivals {
    fn wait(&self) {
        let first = self.reads.lock().unwrap_or_else(PoisonError::into_inner).front().copied();
        if let Some((_, ends)) = first {
            self.clock.sleep_until(ends);
        }
    }
}
