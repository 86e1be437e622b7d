//! What another machine did for a run.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One worker of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerRecord {
    /// Host and port.
    pub name: String,
    /// Whether it answered at the end.
    pub answers: bool,
    /// Requests, and rows that came back.
    pub requests: u64,
    pub rows: u64,
    /// Rows that did not and were computed elsewhere.
    pub recomputed: u64,
    /// Bytes of frames.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// From requests to their responses, all together, in microseconds.
    pub exchange_us: u64,
    /// Of these: the worker computing, by its own clock.
    pub compute_us: u64,
    /// What was left to wait when everything else of a block was done, in microseconds.
    pub wait_us: u64,
    /// Of decoding alone.
    #[serde(default)]
    pub decode: WorkerTimes,
    /// Experts that were its own: layer, first expert, and one past the last of each run.
    #[serde(default)]
    pub keeps: Vec<(u16, u16, u16)>,
    /// Why it was last lost.
    pub lost: Option<String>,
}

/// Requests of one phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerTimes {
    /// Requests, and rows that came back.
    pub requests: u64,
    pub rows: u64,
    /// As in a [`WorkerRecord`].
    pub exchange_us: u64,
    pub compute_us: u64,
}

impl WorkerRecord {
    /// What is not decoding.
    pub fn prefill(&self) -> WorkerTimes {
        WorkerTimes {
            requests: self.requests - self.decode.requests,
            rows: self.rows - self.decode.rows,
            exchange_us: self.exchange_us - self.decode.exchange_us,
            compute_us: self.compute_us - self.decode.compute_us,
        }
    }

    /// Time of exchanges that the worker did not compute: network, TLS, waking up. Microseconds.
    pub fn wire_us(&self) -> u64 {
        self.exchange_us.saturating_sub(self.compute_us)
    }
}

impl fmt::Display for WorkerRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, requests, rows, recomputed, .. } = self;
        let each = |us: u64| us / (*requests).max(1);
        write!(
            f,
            "worker {name}: {rows} rows in {requests} requests of {} µs ({} computing), {:.1} MB \
             there, {:.1} MB back, {:.2} s waited",
            each(self.exchange_us),
            each(self.compute_us),
            self.sent_bytes as f64 / 1e6,
            self.received_bytes as f64 / 1e6,
            self.wait_us as f64 / 1e6
        )?;
        if *recomputed > 0 {
            write!(f, "; {recomputed} rows computed elsewhere")?;
        }
        match &self.lost {
            Some(why) if !self.answers => write!(f, "; lost: {why}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_it_did_and_why_it_is_gone() {
        let worker = WorkerRecord {
            name: "b:7100".into(),
            answers: true,
            requests: 10,
            rows: 80,
            sent_bytes: 1_500_000,
            received_bytes: 2_500_000,
            exchange_us: 5000,
            compute_us: 4000,
            wait_us: 20_000,
            ..WorkerRecord::default()
        };
        let line = "worker b:7100: 80 rows in 10 requests of 500 µs (400 computing), 1.5 MB there, \
                    2.5 MB back, 0.02 s waited";
        assert_eq!(worker.to_string(), line);
        assert_eq!(worker.wire_us(), 1000);
        let back = WorkerRecord { recomputed: 8, lost: Some("late".into()), ..worker };
        assert_eq!(back.to_string(), format!("{line}; 8 rows computed elsewhere"));
        let lost = WorkerRecord { answers: false, ..back };
        assert_eq!(lost.to_string(), format!("{line}; 8 rows computed elsewhere; lost: late"));
    }
}
