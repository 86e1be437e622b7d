//! What came of a hostile run, and whether that will do.

use motley_cost::statistics::quantile;
use motley_testkit::hostile::{Attack, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;

/// Largest p99 of the honest client beside attacks, as a multiple of its p99 alone.
const SLOWER_MOST: f64 = 3.0;
/// Unexpected outcomes that are told one by one.
const TOLD_MOST: usize = 20;

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub seed: u64,
    pub requests: usize,
    pub mixed: Mixed,
    pub runs: Runs,
}

/// Attacks of all kinds beside an honest client.
#[derive(Debug, Clone, Serialize)]
pub struct Mixed {
    pub alone: Latency,
    pub beside: Latency,
    /// Growth of the server's peak memory.
    pub grown_kib: u64,
    pub alive: bool,
    pub tally: Tally,
}

/// Runs of one class under every pre-tokenizer.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Runs {
    pub pre_tokenizers: usize,
    /// Those under which the server ended or the honest client got no answer, and why.
    pub failed: Vec<String>,
    pub tally: Tally,
}

/// What came of attacks.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Tally {
    /// By attack and outcome.
    pub outcomes: BTreeMap<String, BTreeMap<String, usize>>,
    /// Outcomes a sound server does not let happen.
    pub unexpected: usize,
    /// The first of them.
    pub told: Vec<String>,
}

/// How long answers took.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    pub answers: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Latency {
    pub(super) fn of(waited_ms: &[f64]) -> Self {
        let at = |share| quantile(waited_ms, share).unwrap_or(f64::NAN);
        Self { answers: waited_ms.len(), p50_ms: at(0.5), p99_ms: at(0.99) }
    }
}

impl Tally {
    pub(super) fn count(&mut self, attack: &Attack, outcome: &Outcome) {
        let what = match outcome {
            Outcome::Answered { status, .. } => status.to_string(),
            Outcome::Closed => "closed".into(),
            Outcome::Left => "left".into(),
            Outcome::Stalled(_) => "stalled".into(),
            Outcome::Lost(_) => "lost".into(),
        };
        *self.outcomes.entry(attack.name.into()).or_default().entry(what).or_default() += 1;
        if !attack.allows(outcome) {
            self.unexpected += 1;
            if self.told.len() < TOLD_MOST {
                self.told.push(format!("{}: {outcome:?}", attack.name));
            }
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        for (attack, outcomes) in other.outcomes {
            let mine = self.outcomes.entry(attack).or_default();
            outcomes.into_iter().for_each(|(what, count)| *mine.entry(what).or_default() += count);
        }
        self.unexpected += other.unexpected;
        self.told.extend(other.told);
        self.told.truncate(TOLD_MOST);
    }
}

impl Report {
    /// How many times as long the honest client waited at its 99th percentile.
    pub fn slower(&self) -> f64 {
        self.mixed.beside.p99_ms / self.mixed.alone.p99_ms
    }

    /// What is wrong; nothing when all is well.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.runs.failed.clone();
        let tallies = [&self.mixed.tally, &self.runs.tally];
        faults.extend(tallies.iter().flat_map(|tally| tally.told.iter().cloned()));
        let more = tallies.iter().map(|tally| tally.unexpected - tally.told.len()).sum::<usize>();
        if more > 0 {
            faults.push(format!("{more} more unexpected outcomes"));
        }
        if !self.mixed.alive {
            faults.push("the server has ended".into());
        }
        if self.slower().is_nan() || self.slower() > SLOWER_MOST {
            faults.push(format!("p99 beside is {:.1} × p99 alone", self.slower()));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::hostile::Then;

    #[test]
    fn a_report_without_faults_has_every_answer_in_time() {
        let attack = Attack {
            name: "odd host",
            bytes: Vec::new(),
            then: Then::Read,
            statuses: &[400],
            may_close: false,
        };
        let mut tally = Tally::default();
        tally.count(&attack, &Outcome::Answered { status: 400, body: String::new() });
        let latency = |p99_ms| Latency { answers: 9, p50_ms: 1.0, p99_ms };
        let mixed = |beside, tally| Mixed {
            alone: latency(10.0),
            beside: latency(beside),
            grown_kib: 0,
            alive: true,
            tally,
        };
        let report = |mixed| Report { seed: 1, requests: 1, mixed, runs: Runs::default() };
        assert_eq!(report(mixed(29.0, tally.clone())).faults(), [""; 0]);
        assert_eq!(report(mixed(31.0, tally.clone())).faults().len(), 1);
        assert_eq!(report(mixed(f64::NAN, tally.clone())).faults().len(), 1);
        tally.count(&attack, &Outcome::Lost("silence".into()));
        tally.count(&attack, &Outcome::Closed);
        assert_eq!(report(mixed(10.0, tally)).faults().len(), 2);
    }
}
