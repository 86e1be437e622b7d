//! The machine's memory while a session runs: read every half second, so that the arena
//! gives way when others need memory (M3). Reads counters; `sched::breath` decides.

use motley_cost::Nanos;
use motley_host::{pressure, refaults};
use motley_sched::breath::{Breath, BreathLimits, Pressure};
use std::path::Path;

/// Time between readings: PSI's own clock ticks every two seconds, its totals always.
const INTERVAL: Nanos = Nanos(500_000_000);

/// Watches one machine for one session.
pub(crate) struct PressureWatch {
    breath: Breath,
    next: Nanos,
    last: Totals,
}

/// Counters since the machine was started.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    stalled_us: u64,
    refaults: u64,
}

impl PressureWatch {
    /// A watch for a cache of at most `most` slots; at least `least` are kept.
    pub(crate) fn new(least: u32, most: u32, now: Nanos) -> Self {
        let breath = Breath::new(BreathLimits::between(least, most), now);
        Self { breath, next: now + INTERVAL, last: totals() }
    }

    /// The new number of slots when it is time to look and something changed.
    pub(crate) fn look(&mut self, now: Nanos) -> Option<u32> {
        if now < self.next {
            return None;
        }
        self.next = now + INTERVAL;
        let (before, seen) = (self.last, totals());
        self.last = seen;
        let stalled_us = seen.stalled_us.saturating_sub(before.stalled_us);
        let refaults = seen.refaults.saturating_sub(before.refaults);
        let stalled = Nanos(stalled_us.saturating_mul(1000));
        self.breath.observe(now, Pressure { stalled, refaults })
    }
}

/// Zero where the system does not count: then memory never looks scarce.
fn totals() -> Totals {
    let root = Path::new("/");
    let stalled_us = pressure::read(root).map_or(0, |pressure| pressure.some_total_us);
    Totals { stalled_us, refaults: refaults::read(root).unwrap_or(0) }
}
