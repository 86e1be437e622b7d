//! What a drive came to: hit rate, speed, utilisation, idle link time. Sums and ratios only.

use std::fmt;

use motley_cost::{EnergyCost, Nanos};
use motley_sched::Unit;
use motley_sched::scheduler::Counts;
use motley_trace::Phase;

/// Sums over a drive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// From the first pass to the end of the last.
    pub wall: Nanos,
    /// Prefill passes.
    pub prefill: PhaseOutcome,
    /// Decode passes.
    pub decode: PhaseOutcome,
    /// What the scheduler counted.
    pub counts: Counts,
    /// Time of everything that is not a routed expert.
    pub dense_busy: Nanos,
    /// Routed experts on the fast unit.
    pub fast_busy: Nanos,
    /// Routed experts on each home lane.
    pub home_busy: Vec<Nanos>,
    /// Demanded transfers.
    pub demand_busy: Nanos,
    /// Guessed transfers.
    pub guess_busy: Nanos,
    /// Buffers that changed roles.
    pub exchanges: u64,
    /// Buffers given back.
    pub releases: u64,
}

/// Sums over the passes of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseOutcome {
    /// Passes.
    pub passes: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Their time.
    pub time: Nanos,
}

impl PhaseOutcome {
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
    pub(crate) fn on_pass(&mut self, phase: Phase, tokens: u32, took: Nanos) {
        let outcome = match phase {
            Phase::Prefill => &mut self.prefill,
            Phase::Decode => &mut self.decode,
        };
        outcome.passes += 1;
        outcome.tokens += u64::from(tokens);
        outcome.time += took;
    }

    pub(crate) fn on_compute(&mut self, unit: Unit, took: Nanos) {
        match unit {
            Unit::Fast => self.fast_busy += took,
            Unit::Home(lane) => {
                let lane = usize::from(lane);
                if self.home_busy.len() <= lane {
                    self.home_busy.resize(lane + 1, Nanos::ZERO);
                }
                self.home_busy[lane] += took;
            }
        }
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

    /// Joules of both sides over the drive (M7). The fast unit also does everything dense; the
    /// home units are one device, busy as long as the busiest of them.
    pub fn joules(&self, fast: EnergyCost, home: Option<EnergyCost>) -> f64 {
        let busiest = self.home_busy.iter().copied().max().unwrap_or(Nanos::ZERO);
        let home = home.map_or(0.0, |cost| cost.joules(self.wall, busiest));
        fast.joules(self.wall, self.dense_busy + self.fast_busy) + home
    }

    /// Time the link moved nothing.
    pub fn link_idle(&self) -> Nanos {
        self.wall - self.demand_busy - self.guess_busy
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |busy| 100.0 * self.share_of_wall(busy);
        let (prefill, decode) = (self.prefill.tokens_per_s(), self.decode.tokens_per_s());
        writeln!(f, "hit rate      {:6.1} %", 100.0 * self.hit_rate())?;
        writeln!(f, "prefill       {prefill:6.1} tok/s ({} tokens)", self.prefill.tokens)?;
        writeln!(f, "decode        {decode:6.1} tok/s ({} tokens)", self.decode.tokens)?;
        writeln!(f, "dense         {:6.1} % of the time", percent(self.dense_busy))?;
        writeln!(f, "fast unit     {:6.1} %", percent(self.fast_busy))?;
        for (lane, busy) in self.home_busy.iter().enumerate() {
            writeln!(f, "home lane {lane:<3} {:6.1} %", percent(*busy))?;
        }
        writeln!(f, "link, demand  {:6.1} %", percent(self.demand_busy))?;
        writeln!(f, "link, guesses {:6.1} %", percent(self.guess_busy))?;
        write!(f, "link, idle    {:6.1} %", percent(self.link_idle()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_counts_rest_and_work_of_both_sides() {
        let second = Nanos(1_000_000_000);
        let outcome = Outcome {
            wall: Nanos(2 * second.0),
            dense_busy: second,
            home_busy: vec![Nanos::ZERO, second],
            ..Outcome::default()
        };
        let cost = EnergyCost { idle_w: 10.0, active_w: 90.0 };
        assert_eq!(outcome.joules(cost, None), 110.0);
        assert_eq!(outcome.joules(cost, Some(cost)), 220.0);
        assert_eq!(outcome.link_idle(), outcome.wall);
    }
}
