//! What the disk has done so far: figures for `-v`, never an input to a decision here.

use std::time::{Duration, Instant};

/// Sums since the reader was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bytes asked for and delivered.
    pub bytes: u64,
    /// Bytes the device was asked for: `bytes`, aligned, and retries.
    pub device_bytes: u64,
    /// Reads given to the system, retries too.
    pub reads: u64,
    /// Reads that went through a staging buffer and were copied.
    pub copied_reads: u64,
    /// Second attempts after an error or a short read.
    pub retries: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests completed, failed ones too.
    pub requests: u64,
    /// Time with at least one read in flight.
    pub busy: Duration,
}

impl Counters {
    /// What was added after `earlier`, an older reading of the same reader.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes: self.bytes - earlier.bytes,
            device_bytes: self.device_bytes - earlier.device_bytes,
            reads: self.reads - earlier.reads,
            copied_reads: self.copied_reads - earlier.copied_reads,
            retries: self.retries - earlier.retries,
            errors: self.errors - earlier.errors,
            requests: self.requests - earlier.requests,
            busy: self.busy.saturating_sub(earlier.busy),
        }
    }

    /// Bytes delivered per second of busy time, in MB (10⁶); 0 before the first read.
    pub fn mb_per_s(&self) -> f64 {
        match self.busy.as_secs_f64() {
            0.0 => 0.0,
            busy_s => self.bytes as f64 / 1e6 / busy_s,
        }
    }
}

/// Measures the time during which something is in flight.
#[derive(Debug, Default)]
pub(crate) struct BusyClock {
    in_flight: u32,
    since: Option<Instant>,
    total: Duration,
}

impl BusyClock {
    /// One more read is in flight.
    pub(crate) fn begin(&mut self) {
        self.in_flight += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    /// One read has ended.
    pub(crate) fn end(&mut self) {
        debug_assert!(self.in_flight > 0);
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 {
            self.total += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        }
    }

    /// Busy time up to now.
    pub(crate) fn total(&self) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
