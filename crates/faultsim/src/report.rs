//! Many seeds, counted. Judges nothing.

use crate::counts::Counts;
use crate::world::Outcome;
use serde::Serialize;
use std::time::Duration;

/// What many seeds came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    pub seeds: u64,
    /// Of them with at least one fault.
    pub seeds_with_faults: u64,
    pub counts: Counts,
    /// Longest any request waited for its end, in virtual seconds.
    pub longest_wait_s: f64,
    /// Seeds that broke a rule, and which.
    pub failures: Vec<(u64, String)>,
}

impl Report {
    /// Adds one run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.seeds_with_faults += u64::from(outcome.counts.faults() > 0);
        self.counts.add(&outcome.counts);
        self.waited(outcome.longest_wait);
        if let Err(broken) = &outcome.verdict {
            self.failures.push((outcome.seed, broken.clone()));
        }
    }

    /// Adds another report.
    pub fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.seeds_with_faults += other.seeds_with_faults;
        self.counts.add(&other.counts);
        self.longest_wait_s = self.longest_wait_s.max(other.longest_wait_s);
        self.failures.extend(other.failures);
        self.failures.sort_unstable();
    }

    fn waited(&mut self, wait: Duration) {
        self.longest_wait_s = self.longest_wait_s.max(wait.as_secs_f64());
    }
}
