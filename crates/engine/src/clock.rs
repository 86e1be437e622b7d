//! The wall clock, read in one place. The scheduler's time is in `blocks::clock`.

use std::time::Instant;

/// This moment.
#[allow(clippy::disallowed_methods, reason = "a driver reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
