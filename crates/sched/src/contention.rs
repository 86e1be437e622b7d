//! How many threads decode while other programs want the cores too. Threads that wait for each
//! other in a spinning barrier are as slow as the one that is not running: two threads beside
//! two busy neighbours were seen to fall from 60 to 1 token per second, where one thread alone
//! keeps 50. Times are arguments; nothing is measured here.
//!
//! ```text
//!            slow or contended                    faster
//!  steady ───────────────────────► trial, fewer ─────────► steady with fewer
//!    ▲                                  │ slower              │ after a rest
//!    └── rest, twice as long each time ◄┘◄── slower ── trial, more
//! ```
//!
//! A trial is a few tokens; going on needs no belief about why decoding was slow.

use motley_cost::Nanos;
use std::collections::VecDeque;

/// Tokens the running median is taken over.
const WINDOW_TOKENS: usize = 16;
/// Tokens of a trial.
const TRIAL_TOKENS: usize = 4;
/// A token this much slower than the median is slow.
const SLOW_FACTOR: f64 = 3.0;
/// Slow tokens in a row after which fewer threads are tried, when the cores are contended.
const SLOW_TOKENS: u32 = 2;
/// The same, when it is unknown whether they are.
const SLOW_TOKENS_UNKNOWN: u32 = 4;
/// After as many slow tokens without contention that speed is the new normal.
const NEW_NORMAL_TOKENS: u32 = 8;
/// Time over the reference's that a trial must stay below to be kept.
const KEEP_FACTOR: f64 = 0.92;
/// A token of a trial this much slower than the reference ends it; the first of a trial may wake
/// threads and warm caches.
const GIVE_UP_FACTOR: (f64, f64) = (4.0, 2.0);
/// Shortest and longest rest between trials.
const REST: (Nanos, Nanos) = (Nanos(2_000_000_000), Nanos(64_000_000_000));
/// Shortest rest before more threads are tried while cores are contended: such a trial can cost
/// seconds, and when the neighbours leave that is seen at once.
const REST_CONTENDED: Nanos = Nanos(16_000_000_000);

/// What was seen of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When it was done.
    pub now: Nanos,
    /// Time it took, without waiting for the disk.
    pub took: Nanos,
    /// Whether programs waited for a core lately; `None` where the system does not tell.
    pub contended: Option<bool>,
}

/// The number of threads over time, between 1 and the most.
#[derive(Debug, Clone)]
pub struct Contention {
    most: u32,
    threads: u32,
    recent: VecDeque<Nanos>,
    slow: Vec<Nanos>,
    trial: Option<Trial>,
    rest: Nanos,
    next_trial: Nanos,
    was_contended: bool,
}

#[derive(Debug, Clone)]
struct Trial {
    /// Threads before it, and what a token took with them.
    from: u32,
    reference: Nanos,
    times: Vec<Nanos>,
}

impl Contention {
    /// `most` threads from `now` on.
    pub fn new(most: u32, now: Nanos) -> Self {
        Self {
            most: most.max(1),
            threads: most.max(1),
            recent: VecDeque::new(),
            slow: Vec::new(),
            trial: None,
            rest: REST.0,
            next_trial: now,
            was_contended: false,
        }
    }

    /// Threads that decode now.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Whether a number of threads is only being tried.
    pub fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// What a token takes is another from here on, for reasons of its own: a trial is broken off, and
    /// the times seen so far are no measure. The number of threads stays, but for a trial's.
    pub fn forget(&mut self) {
        self.recent.clear();
        self.slow.clear();
        if let Some(trial) = self.trial.take() {
            self.threads = trial.from;
        }
    }

    /// Takes note of a token; the number of threads for the next when it changes.
    pub fn observe(&mut self, seen: Seen) -> Option<u32> {
        let before = self.threads;
        match self.trial.take() {
            Some(trial) => self.on_trial(trial, seen),
            None => self.on_steady(seen),
        }
        (self.threads != before).then_some(self.threads)
    }

    fn on_steady(&mut self, seen: Seen) {
        self.sort_in(seen);
        let contended = seen.contended == Some(true);
        if self.was_contended && !contended && self.threads < self.most {
            // The neighbours have gone: no need to rest any longer.
            self.rest = REST.0;
            self.next_trial = self.next_trial.min(seen.now);
        }
        self.was_contended = contended;
        if seen.now < self.next_trial {
            return;
        }
        if self.threads > 1 && self.is_suspicious(seen.contended) {
            self.begin_trial((self.threads / 2).max(1));
        } else if self.threads < self.most && self.recent.len() >= TRIAL_TOKENS {
            self.begin_trial((self.threads * 2).min(self.most));
        }
    }

    fn sort_in(&mut self, seen: Seen) {
        let slow = self.median().is_some_and(|median| factor(seen.took, median) >= SLOW_FACTOR);
        if !slow {
            self.slow.clear();
            self.recent.push_back(seen.took);
        } else {
            self.slow.push(seen.took);
            if seen.contended == Some(false) && self.slow.len() as u32 >= NEW_NORMAL_TOKENS {
                self.recent = std::mem::take(&mut self.slow).into();
            }
        }
        while self.recent.len() > WINDOW_TOKENS {
            self.recent.pop_front();
        }
    }

    fn is_suspicious(&self, contended: Option<bool>) -> bool {
        let slow = self.slow.len() as u32;
        match contended {
            Some(true) => slow >= SLOW_TOKENS || self.recent.len() >= TRIAL_TOKENS,
            Some(false) => false,
            None => slow >= SLOW_TOKENS_UNKNOWN,
        }
    }

    fn begin_trial(&mut self, threads: u32) {
        let slow = median_of(self.slow.iter().copied());
        let Some(reference) = slow.or_else(|| self.median()) else { return };
        self.trial = Some(Trial { from: self.threads, reference, times: Vec::new() });
        self.threads = threads;
    }

    fn on_trial(&mut self, mut trial: Trial, seen: Seen) {
        trial.times.push(seen.took);
        let (first, later) = GIVE_UP_FACTOR;
        let limit = if trial.times.len() == 1 { first } else { later };
        let hopeless = factor(seen.took, trial.reference) >= limit;
        if trial.times.len() < TRIAL_TOKENS && !hopeless {
            self.trial = Some(trial);
            return;
        }
        let median = median_of(trial.times.iter().copied()).unwrap_or(Nanos::NEVER);
        self.slow.clear();
        if factor(median, trial.reference) < KEEP_FACTOR {
            self.rest = REST.0;
            self.recent = trial.times.into();
        } else if self.threads < trial.from && self.threads > 1 {
            // Half of too many may still be too many.
            self.threads /= 2;
            self.trial = Some(Trial { times: Vec::new(), ..trial });
        } else {
            self.threads = trial.from;
            self.rest = Nanos(self.rest.0.saturating_mul(2)).min(REST.1);
        }
        let yielding = seen.contended == Some(true) && self.threads < self.most;
        let rest = if yielding { self.rest.max(REST_CONTENDED) } else { self.rest };
        self.next_trial = seen.now + rest;
        self.was_contended = seen.contended == Some(true);
    }

    fn median(&self) -> Option<Nanos> {
        median_of(self.recent.iter().copied())
    }
}

fn median_of(times: impl Iterator<Item = Nanos>) -> Option<Nanos> {
    let mut times: Vec<Nanos> = times.collect();
    times.sort_unstable();
    times.get(times.len().checked_sub(1)? / 2).copied()
}

fn factor(time: Nanos, reference: Nanos) -> f64 {
    time.0 as f64 / reference.0.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A machine of two cores: what a token takes by threads, alone and beside two neighbours.
    struct World {
        contention: Contention,
        now: Nanos,
        reports: bool,
    }

    impl World {
        fn new(most: u32, reports: bool) -> Self {
            Self { contention: Contention::new(most, Nanos::ZERO), now: Nanos::ZERO, reports }
        }

        /// Decodes for `span_ms`; tokens made.
        fn run(&mut self, span_ms: u64, busy: bool) -> u64 {
            let end = self.now + Nanos(span_ms * MS);
            let mut tokens = 0;
            while self.now < end {
                let took_ms = match (busy, self.contention.threads()) {
                    (false, 1) => 30,
                    (false, _) => 17,
                    (true, 1) => 40,
                    (true, _) => 900,
                };
                let took = Nanos(took_ms * MS);
                self.now += took;
                let contended = self.reports.then_some(busy);
                self.contention.observe(Seen { now: self.now, took, contended });
                tokens += 1;
            }
            tokens
        }
    }

    #[test]
    fn contention_is_escaped_within_seconds_and_left_behind() {
        for reports in [true, false] {
            let mut world = World::new(2, reports);
            world.run(5_000, false);
            assert_eq!(world.contention.threads(), 2);
            world.run(10_000, true);
            assert_eq!(world.contention.threads(), 1, "reported: {reports}");
            let tokens = world.run(60_000, true);
            assert!(tokens > 60_000 / 40 * 8 / 10, "reported: {reports}, {tokens} of 1500");
            world.run(70_000, false);
            assert_eq!(world.contention.threads(), 2, "reported: {reports}");
        }
    }

    #[test]
    fn contention_that_was_there_first_is_escaped_too() {
        let mut world = World::new(2, true);
        world.run(10_000, true);
        assert_eq!(world.contention.threads(), 1);
        world.run(1_000, false);
        assert_eq!(world.contention.threads(), 2, "back at once when the neighbours have gone");
    }

    #[test]
    fn calm_costs_nothing_and_contention_that_does_not_hurt_little() {
        let mut world = World::new(2, true);
        assert_eq!(world.run(17_000, false), 1000);
        let mut contention = Contention::new(2, Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let mut on_fewer = 0;
        for _ in 0..5000 {
            let one = contention.threads() == 1;
            on_fewer += u32::from(one);
            let took = Nanos(if one { 30 } else { 17 } * MS);
            now += took;
            contention.observe(Seen { now, took, contended: Some(true) });
        }
        assert!((1..40).contains(&on_fewer), "{on_fewer} of 5000 tokens on one thread");
    }

    #[test]
    fn a_trial_that_is_broken_off_changes_nothing() {
        let mut world = World::new(2, true);
        while !world.contention.is_trying() {
            world.run(20, true);
        }
        world.contention.forget();
        assert!(!world.contention.is_trying());
        assert_eq!(world.contention.threads(), 2);
        world.run(10_000, true);
        assert_eq!(world.contention.threads(), 1);
        world.contention.forget();
        assert_eq!(world.contention.threads(), 1, "what was found out stays");
    }

    #[test]
    fn slow_tokens_without_contention_are_the_new_normal() {
        let mut contention = Contention::new(4, Nanos::ZERO);
        for step in 0..200u64 {
            let took = Nanos(if step < 20 { 10 } else { 100 } * MS);
            let seen = Seen { now: Nanos(step * 100 * MS), took, contended: Some(false) };
            assert_eq!(contention.observe(seen), None);
        }
    }

    #[test]
    fn many_threads_are_halved_until_it_helps() {
        let mut contention = Contention::new(8, Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let mut changes = Vec::new();
        for _ in 0..200 {
            let threads = contention.threads();
            let took = Nanos(if threads > 2 { 500 * MS } else { 80 * MS / u64::from(threads) });
            now += took;
            changes.extend(contention.observe(Seen { now, took, contended: Some(true) }));
        }
        assert!(changes.starts_with(&[4, 2]), "{changes:?}");
        assert!(changes[2..].iter().all(|threads| [1, 2, 4].contains(threads)), "{changes:?}");
    }
}
