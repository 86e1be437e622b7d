//! The machine's memory: what there is at first, and every half second while a session runs,
//! so that the arena gives way when others need memory (M3). Reads counters; `plan::budget`
//! and `sched::resize` decide.

use motley_cost::Nanos;
use motley_host::{memory, pressure, refaults};
use motley_plan::budget::MachineMemory;
use motley_sched::resize::{Pressure, ResizeLimits, Resizer};
use std::path::Path;

/// The machine's memory now, as a budget counts it; `None` where the system does not tell.
pub fn machine_memory() -> Option<MachineMemory> {
    let state = memory::read(Path::new("/")).ok()?;
    let limited = state.limit_bytes.is_some().then_some(state.room_bytes);
    Some(MachineMemory {
        total_bytes: state.total_bytes,
        available_bytes: state.available_bytes,
        cgroup_bytes: limited,
        others_bytes: 0,
    })
}

/// Time between readings: PSI's own clock ticks every two seconds, its totals always.
const INTERVAL: Nanos = Nanos(500_000_000);

/// Watches one machine for one session.
pub(crate) struct PressureWatch {
    resize: Resizer,
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
        let resize = Resizer::new(ResizeLimits::between(least, most), now);
        Self { resize, next: now + INTERVAL, last: totals() }
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
        self.resize.observe(now, Pressure { stalled, refaults })
    }
}

/// Zero where the system does not count: then memory never looks scarce.
fn totals() -> Totals {
    let root = Path::new("/");
    let stalled_us = pressure::read(root).map_or(0, |pressure| pressure.some_total_us);
    Totals { stalled_us, refaults: refaults::read(root).unwrap_or(0) }
}
