//! What a drive came to: hit rate, speed, utilisation, idle link time. Sums and ratios only.

use motley_cost::Nanos;
use motley_sched::scheduler::Counts;
use motley_sched::{LeftOut, Purpose, Unit};
use motley_trace::Phase;

/// Sums over a drive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// From the first pass to the end of the last.
    pub wall: Nanos,
    pub prefill: PhaseOutcome,
    pub decode: PhaseOutcome,
    /// Every pass, in order.
    pub passes: Vec<PassOutcome>,
    /// What the scheduler counted.
    pub counts: Counts,
    /// Time of everything that is not a routed expert.
    pub dense_busy: Nanos,
    /// Routed experts on the units of tiers.
    pub fast_busy: Nanos,
    /// The same, each tier's.
    pub tier_busy: Vec<Nanos>,
    /// Routed experts on each home lane.
    pub home_busy: Vec<Nanos>,
    /// Demanded transfers.
    pub demand_busy: Nanos,
    /// Guessed transfers.
    pub guess_busy: Nanos,
    /// Both, over each tier's link.
    pub link_busy: Vec<Nanos>,
    /// Each worker, where there are any.
    pub hosts: Vec<HostOutcome>,
    /// Pairs of token and expert of layers in which some may be left out, and what was.
    pub weighed_pairs: u64,
    pub left_out: LeftOut,
}

/// Sums of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostOutcome {
    pub requests: u64,
    /// Pairs of token and expert it computed.
    pub rows: u64,
    pub request_bytes: u64,
    pub answer_bytes: u64,
    /// Round trips and its own frames on the cable.
    pub wire: Nanos,
    /// Its experts, reads from its disk included.
    pub compute: Nanos,
    /// What the head waited when this was the last to answer.
    pub waited: Nanos,
}

/// One pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassOutcome {
    /// Its number in the trace.
    pub pass: u64,
    pub phase: Phase,
    pub tokens: u32,
    pub time: Nanos,
}

/// Sums over the passes of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseOutcome {
    pub passes: u64,
    pub tokens: u64,
    pub time: Nanos,
}

impl PhaseOutcome {
    pub(crate) fn add(&mut self, pass: &PassOutcome) {
        self.passes += 1;
        self.tokens += u64::from(pass.tokens);
        self.time += pass.time;
    }

    /// Tokens per second; 0 without passes.
    pub fn tokens_per_s(&self) -> f64 {
        if self.time == Nanos::ZERO { 0.0 } else { self.tokens as f64 / self.time.as_s() }
    }

    /// Mean time of a pass, in seconds; 0 without passes.
    pub fn pass_s(&self) -> f64 {
        self.time.as_s() / self.passes.max(1) as f64
    }
}

impl Outcome {
    pub(crate) fn on_pass(&mut self, pass: PassOutcome) {
        match pass.phase {
            Phase::Prefill => self.prefill.add(&pass),
            Phase::Decode => self.decode.add(&pass),
        }
        self.passes.push(pass);
    }

    pub(crate) fn on_compute(&mut self, unit: Unit, took: Nanos) {
        match unit {
            Unit::Tier(tier) => {
                self.fast_busy += took;
                add_to(&mut self.tier_busy, tier, took);
            }
            Unit::Home(lane) => add_to(&mut self.home_busy, lane, took),
        }
    }

    pub(crate) fn on_load(&mut self, tier: u16, purpose: Purpose, took: Nanos) {
        match purpose {
            Purpose::Demand => self.demand_busy += took,
            Purpose::Guess => self.guess_busy += took,
        }
        add_to(&mut self.link_busy, tier, took);
    }

    /// Tokens per second of the passes from `first` on; 0 without any.
    pub fn tokens_per_s_from(&self, first: u64) -> f64 {
        let mut sum = PhaseOutcome::default();
        self.passes.iter().filter(|pass| pass.pass >= first).for_each(|pass| sum.add(pass));
        sum.tokens_per_s()
    }

    /// Routed experts found in the fast tier, guesses included, over all routed.
    pub fn hit_rate(&self) -> f64 {
        let counts = &self.counts;
        (counts.hits + counts.guessed_hits) as f64 / counts.lookups.max(1) as f64
    }

    /// Part of the wall time something was busy.
    pub fn share_of_wall(&self, busy: Nanos) -> f64 {
        busy.as_s() / self.wall.as_s().max(f64::MIN_POSITIVE)
    }

    /// Time the link moved nothing.
    pub fn link_idle(&self) -> Nanos {
        self.wall - self.demand_busy - self.guess_busy
    }
}

fn add_to(busy: &mut Vec<Nanos>, number: u16, took: Nanos) {
    let at = usize::from(number);
    if busy.len() <= at {
        busy.resize(at + 1, Nanos::ZERO);
    }
    busy[at] += took;
}
