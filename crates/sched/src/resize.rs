//! M3: how many slots the cache may use while the machine's memory comes and goes. Gives
//! slots back at once when others wait for memory, takes them again slowly when nobody does.
//!
//! Additive increase, multiplicative decrease, as congestion control does it: a share of the
//! slots is given back per reading under pressure, a small fixed part taken again after a calm
//! time. Readings are arguments; nothing is measured here.

use motley_cost::Nanos;

/// What was seen of the machine since the last reading. Both are counters' differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Time in which some task waited for memory (PSI `some`).
    pub stalled: Nanos,
    /// Pages that were dropped and soon wanted again.
    pub refaults: u64,
}

/// Named limits of [`Resizer`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeLimits {
    /// Slots when memory is plentiful.
    pub most: u32,
    /// Slots that are never given back.
    pub least: u32,
    /// Share of the time stalled from which memory counts as scarce.
    pub scarce_share: f64,
    /// Refaults per second from which memory counts as scarce.
    pub scarce_refaults_per_s: f64,
    /// Share of the slots given back per reading under pressure.
    pub out_share: f64,
    /// Share of `most` taken again after each calm time.
    pub in_share: f64,
    /// Time without pressure before slots are taken again.
    pub calm: Nanos,
}

impl ResizeLimits {
    /// The default limits between `least` and `most` slots: 5 % of the time stalled or 4 MB of
    /// refaults per second is scarcity; an eighth goes, a thirty-second comes back per 2 s.
    pub fn between(least: u32, most: u32) -> Self {
        Self {
            most,
            least: least.min(most),
            scarce_share: 0.05,
            scarce_refaults_per_s: 1000.0,
            out_share: 1.0 / 8.0,
            in_share: 1.0 / 32.0,
            calm: Nanos(2_000_000_000),
        }
    }
}

/// The number of slots over time.
#[derive(Debug)]
pub struct Resizer {
    limits: ResizeLimits,
    slots: u32,
    read_at: Nanos,
    calm_since: Nanos,
}

impl Resizer {
    /// All slots, from `now` on.
    pub fn new(limits: ResizeLimits, now: Nanos) -> Self {
        Self { limits, slots: limits.most, read_at: now, calm_since: now }
    }

    /// Slots that may be used.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Takes note of a reading; the new number of slots when it changes.
    pub fn observe(&mut self, now: Nanos, seen: Pressure) -> Option<u32> {
        let elapsed = now.since(self.read_at);
        self.read_at = now;
        if elapsed == Nanos::ZERO {
            return None;
        }
        let before = self.slots;
        if self.is_scarce(elapsed, seen) {
            self.calm_since = now;
            let out = (f64::from(self.slots) * self.limits.out_share).ceil() as u32;
            self.slots = self.slots.saturating_sub(out).max(self.limits.least);
        } else if now.since(self.calm_since) >= self.limits.calm {
            self.calm_since = now;
            let back = (f64::from(self.limits.most) * self.limits.in_share).ceil() as u32;
            self.slots = self.slots.saturating_add(back).min(self.limits.most);
        }
        (self.slots != before).then_some(self.slots)
    }

    fn is_scarce(&self, elapsed: Nanos, seen: Pressure) -> bool {
        let seconds = elapsed.0 as f64 / 1e9;
        let share = seen.stalled.0 as f64 / elapsed.0 as f64;
        share > self.limits.scarce_share
            || seen.refaults as f64 / seconds > self.limits.scarce_refaults_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn resize() -> Resizer {
        Resizer::new(ResizeLimits::between(10, 100), Nanos::ZERO)
    }

    fn stalled(share: f64) -> Pressure {
        Pressure { stalled: Nanos((share * SECOND as f64) as u64), refaults: 0 }
    }

    #[test]
    fn scarcity_takes_an_eighth_each_time_down_to_the_least() {
        let mut resize = resize();
        assert_eq!(resize.observe(Nanos(SECOND), stalled(0.2)), Some(87));
        let refaults = Pressure { refaults: 5000, ..Pressure::default() };
        assert_eq!(resize.observe(Nanos(2 * SECOND), refaults), Some(76));
        for second in 3..60 {
            resize.observe(Nanos(second * SECOND), stalled(1.0));
        }
        assert_eq!(resize.slots(), 10);
        assert_eq!(resize.observe(Nanos(60 * SECOND), stalled(1.0)), None, "no change, no word");
    }

    #[test]
    fn calm_gives_back_slowly_and_never_more_than_the_most() {
        let mut resize = resize();
        resize.observe(Nanos(SECOND), stalled(0.5));
        assert_eq!(resize.observe(Nanos(2 * SECOND), stalled(0.0)), None, "not calm for long");
        assert_eq!(resize.observe(Nanos(3 * SECOND), stalled(0.01)), Some(91));
        assert_eq!(resize.observe(Nanos(4 * SECOND), stalled(0.0)), None);
        for second in 5..60 {
            resize.observe(Nanos(second * SECOND), stalled(0.0));
        }
        assert_eq!(resize.slots(), 100);
    }

    #[test]
    fn a_reading_without_time_says_nothing() {
        assert_eq!(resize().observe(Nanos::ZERO, stalled(1.0)), None);
    }
}
