//! The wall clock, as the API writes it.

use std::time::SystemTime;

/// Now, in Unix seconds.
pub(crate) fn unix_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
