//! The clock, read in one place: the wall's, or one that a simulation moves. The scheduler's time
//! is in `blocks::clock`.

use std::time::{Duration, Instant};

/// This moment.
#[allow(clippy::disallowed_methods, reason = "a driver reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Time since some moment in the past, the same one for a clock's whole life.
pub trait Clock: Send + Sync {
    /// Never less than what it said before.
    fn now(&self) -> Duration;
}

/// The machine's clock, from its start on.
#[derive(Debug, Clone, Copy)]
pub struct WallClock(Instant);

impl WallClock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self(now())
    }
}

impl Clock for WallClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
