//! Other machines in a drive: rows of a block go to the workers that have their experts, by the same
//! `share_out` as the engine's, and come back as rows (W9, W10). The rest of the block, dense weights
//! and keys and values stay with the head.
//!
//! - [`unit`](mod@unit): a host's CPU, memory and disk.
//! - [`setup`]: from a head, workers and a cable to a drive.
//! - `recorded`: workers of a run that was recorded.
//! - [`split`]: for comparison, whole layers on each host.

mod recorded;
pub mod setup;
pub mod split;
pub mod unit;

pub(crate) use recorded::recorded;
pub use setup::{HostChoices, HostSetup};
pub use split::{SplitHost, SplitOutcome, layer_split};
pub use unit::{HostRoom, HostUnit};

use motley_cost::exchange::{Question, answer_bytes, answered_us, request_bytes};
use motley_cost::{HostLink, Nanos};
use motley_sched::remote::{ExpertSet, Shard, share_out};
use motley_trace::Visit;

use crate::outcome::HostOutcome;

/// The workers of a head.
pub struct Hosts {
    link: HostLink,
    /// Values of a row.
    width: u64,
    shards: Vec<Shard>,
    units: Vec<HostUnit>,
    outcomes: Vec<HostOutcome>,
}

/// Rows of a layer that others compute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Away {
    /// From asking to the last answer.
    pub(crate) took: Nanos,
    /// Who answers last.
    pub(crate) last: usize,
}

impl Hosts {
    /// What each worker has, and how it computes; rows have `width` values.
    pub fn new(link: HostLink, width: u32, workers: Vec<(ExpertSet, HostUnit)>) -> Self {
        let outcomes = vec![HostOutcome::default(); workers.len()];
        let (sets, units): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
        let shards = sets.into_iter().map(Shard::keeping_all).collect();
        Self { link, width: width.into(), shards, units, outcomes }
    }

    /// Takes the rows from `visit` that workers compute; `None` where they have none of its experts.
    pub(crate) fn take(&mut self, visit: &mut Visit) -> Option<Away> {
        let owners = self.owners(visit);
        let parts = parts(visit, &owners, self.shards.len());
        keep_own(visit, &owners);
        let asked: Vec<usize> =
            (0..parts.len()).filter(|&worker| !parts[worker].experts.is_empty()).collect();
        let questions: Vec<Question> =
            asked.iter().map(|&worker| self.question(worker, &parts[worker])).collect();
        let answered = answered_us(&self.link, &questions);
        let last = (0..asked.len()).max_by(|&a, &b| answered[a].total_cmp(&answered[b]))?;
        Some(Away { took: Nanos::from_us(answered[last]), last: asked[last] })
    }

    /// The head waited for this worker with nothing of its own to do.
    pub(crate) fn on_waited(&mut self, worker: usize, time: Nanos) {
        self.outcomes[worker].waited += time;
    }

    /// What each has done.
    pub(crate) fn outcomes(&self) -> Vec<HostOutcome> {
        self.outcomes.clone()
    }

    /// The worker of each pair of the visit.
    fn owners(&self, visit: &Visit) -> Vec<Option<usize>> {
        let mut experts = visit.experts.clone();
        experts.sort_unstable();
        experts.dedup();
        let at = |expert: &u16| experts.binary_search(expert).unwrap_or_default();
        let mut tokens = vec![0; experts.len()];
        visit.experts.iter().for_each(|expert| tokens[at(expert)] += 1);
        let chosen = share_out(visit.layer.into(), &experts, &tokens, &self.shards);
        visit.experts.iter().map(|expert| chosen[at(expert)]).collect()
    }

    fn question(&mut self, worker: usize, part: &Visit) -> Question {
        let (pairs, rows) = (part.experts.len() as u64, part.tokens() as u64);
        let question = Question {
            request_bytes: request_bytes(pairs, rows, self.width),
            compute_us: self.units[worker].block_us(part),
            answer_bytes: answer_bytes(pairs, self.width),
        };
        let outcome = &mut self.outcomes[worker];
        outcome.requests += 1;
        outcome.rows += pairs;
        outcome.request_bytes += question.request_bytes;
        outcome.answer_bytes += question.answer_bytes;
        outcome.wire += Nanos::from_us(question.wire_us(&self.link));
        outcome.compute += Nanos::from_us(question.compute_us);
        question
    }
}

impl std::fmt::Debug for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosts").field("link", &self.link).field("outcomes", &self.outcomes).finish()
    }
}

/// What each worker is asked: its pairs, and the tokens that have one.
fn parts(visit: &Visit, owners: &[Option<usize>], workers: usize) -> Vec<Visit> {
    let empty =
        Visit { pass: visit.pass, layer: visit.layer, phase: visit.phase, ..Visit::default() };
    let mut parts = vec![empty; workers];
    let k = (visit.experts.len() / visit.tokens().max(1)).max(1);
    for (at, (&expert, owner)) in visit.experts.iter().zip(owners).enumerate() {
        let Some(part) = owner.map(|worker| &mut parts[worker]) else { continue };
        let token = (at / k) as u32;
        if part.positions.last() != Some(&token) {
            part.positions.push(token);
        }
        part.experts.push(expert);
    }
    parts
}

/// Leaves what nobody else has.
fn keep_own(visit: &mut Visit, owners: &[Option<usize>]) {
    let mut own = owners.iter();
    visit.experts.retain(|_| own.next().is_some_and(Option::is_none));
    let mut own = owners.iter();
    visit.weights.retain(|_| own.next().is_some_and(Option::is_none));
}

#[cfg(test)]
mod tests {
    use motley_cost::ComputeCost;
    use motley_trace::TraceHeader;
    use motley_trace::record::FORMAT_VERSION;

    use super::*;

    fn hosts(sets: &[std::ops::Range<u16>]) -> Hosts {
        let header =
            TraceHeader { version: FORMAT_VERSION, model: "m".into(), layers: 1, experts: 8, k: 2 };
        let unit = || HostUnit::new(&header, ComputeCost::constant(100.0));
        let worker = |own: &std::ops::Range<u16>| (ExpertSet::of_layers([0], own.clone()), unit());
        let link = HostLink { round_trip_us: 50.0, gb_per_s: 1.0 };
        Hosts::new(link, 4, sets.iter().map(worker).collect())
    }

    #[test]
    fn rows_go_to_whoever_has_their_experts_and_the_rest_stays() {
        let mut hosts = hosts(&[2..5, 5..8]);
        let mut visit = Visit {
            positions: vec![0, 1],
            experts: vec![2, 0, 3, 6],
            weights: vec![0.5, 0.4, 0.3, 0.2],
            ..Visit::default()
        };
        let away = hosts.take(&mut visit).expect("both have some");
        assert_eq!((visit.experts, visit.weights), (vec![0], vec![0.4]));
        assert_eq!(visit.positions.len(), 2);
        // Two experts take longer than one, whichever cable is first.
        assert_eq!(away.last, 0);
        let done = hosts.outcomes();
        assert_eq!((done[0].rows, done[1].rows), (2, 1));
        // Two rows of four values there, two back; one each for the other.
        assert_eq!((done[0].request_bytes, done[0].answer_bytes), (20 + 16 + 8 + 32, 32 + 32));
        assert_eq!((done[1].request_bytes, done[1].answer_bytes), (20 + 16 + 4 + 16, 32 + 16));
        let least_us = 200.0 + 50.0 + (done[0].request_bytes + done[0].answer_bytes) as f64 / 1e3;
        assert_eq!(away.took, Nanos::from_us(least_us));
    }

    #[test]
    fn a_layer_that_nobody_has_stays_whole() {
        let mut visit = Visit { positions: vec![0], experts: vec![1, 2], ..Visit::default() };
        assert!(hosts(&[5..7, 7..8]).take(&mut visit).is_none());
        assert_eq!(visit.experts, [1, 2]);
    }
}
