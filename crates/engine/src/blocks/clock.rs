//! The scheduler's time: since the executor began, and slower than the wall's when units pretend.

use crate::clock::now;
use motley_cost::Nanos;
use std::time::{Duration, Instant};

/// A clock. Copies of one show the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
    /// Wall time of one unit of the scheduler's time.
    scale: f64,
}

impl Clock {
    /// The wall's time from now on.
    pub fn wall() -> Self {
        Self::scaled(1.0)
    }

    /// One on which a second takes `scale` seconds.
    pub fn scaled(scale: f64) -> Self {
        Self { began: now(), scale }
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        Nanos((self.began.elapsed().as_nanos() as f64 / self.scale) as u64)
    }

    /// Sleeps until `until`; the last stretch awake, since systems sleep too long. Returns how
    /// much later it became all the same: what a busy machine adds.
    pub(crate) fn sleep_until(&self, until: Nanos) -> Nanos {
        let wall = Duration::from_nanos((until.0 as f64 * self.scale) as u64);
        if let Some(left) = wall.checked_sub(self.began.elapsed())
            && let Some(asleep) = left.checked_sub(AWAKE)
        {
            std::thread::sleep(asleep);
        }
        while self.began.elapsed() < wall {
            // Not a yield: on a busy machine that gives the processor away for milliseconds.
            std::hint::spin_loop();
        }
        self.now().since(until)
    }
}

/// Longer than most systems oversleep.
const AWAKE: Duration = Duration::from_micros(120);
