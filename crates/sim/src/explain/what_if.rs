//! "What if": the routing of a recorded run again with one circumstance changed, everything else
//! as measured in the run (M2). Gains are between two simulations, so what the simulator gets
//! wrong in both does not count; predicted speeds are the real speed times that gain.

use motley_cost::{ComputeCost, TransferCost};
use motley_sched::cache::PolicyChoice;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::{Named, SchedulerLimits};
use motley_trace::{PhaseRecord, RunRecord, Trace};
use serde::Serialize;

use super::change::Change;
use super::gpu::with_gpus;
use crate::outcome::{Outcome, PhaseOutcome};
use crate::rerun::{PhaseCosts, Rerun, RerunError};

/// Ceilings for memory that are tried, over the run's.
const MEMORY_FACTORS: [f64; 2] = [1.5, 2.0];
/// How much faster the disk is.
const DISK_FACTOR: f64 = 2.0;

/// What a change would have given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    pub change: Change,
    /// Expected speed of the prompt.
    pub prefill_tokens_per_s: f64,
    /// Expected speed of single tokens.
    pub decode_tokens_per_s: f64,
    /// Expected share of experts that are resident when needed.
    pub hit_rate: f64,
    /// Time of the whole run over the changed run's: 2 is twice as fast.
    pub gain: f64,
}

/// All answers, and how far the simulation of the unchanged run is from the real one (M1).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIf {
    /// Simulated over real speed of the prompt, less one; `None` for runs that cannot be replayed.
    pub prefill_error: Option<f64>,
    /// The same of single tokens.
    pub decode_error: Option<f64>,
    pub answers: Vec<Answer>,
}

/// How computing scales with cores, where it was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scaling {
    /// (threads, speed) in any unit.
    pub speeds: Vec<(u32, f64)>,
}

impl Scaling {
    /// Speed on `to` threads over that on `from`, and whether both were measured.
    fn factor(&self, from: u32, to: u32) -> (f64, bool) {
        let speed = |threads| self.speeds.iter().find(|(of, _)| *of == threads).map(|(_, s)| *s);
        match (speed(from), speed(to)) {
            (Some(before), Some(after)) if before > 0.0 && after > 0.0 => (after / before, true),
            _ => (f64::from(to) / f64::from(from.max(1)), false),
        }
    }
}

/// Answers what can be answered: with a trace everything by replay, without one (and for runs
/// that streamed nothing) what another number of cores gives.
pub fn what_if(
    record: &RunRecord,
    trace: Option<&Trace>,
    scaling: &Scaling,
) -> Result<WhatIf, RerunError> {
    match trace.filter(|_| record.streaming.is_some()) {
        Some(trace) => Replays::new(record, trace)?.all(scaling),
        None => Ok(WhatIf {
            prefill_error: None,
            decode_error: None,
            answers: core_changes(record, scaling).map(|c| resident(record, c)).collect(),
        }),
    }
}

/// Half and twice the threads.
fn core_changes<'a>(
    record: &'a RunRecord,
    scaling: &'a Scaling,
) -> impl Iterator<Item = Change> + 'a {
    let half = (record.threads / 2).max(1);
    let counts = [half, record.threads * 2].into_iter().filter(|n| *n != record.threads);
    counts.map(|threads| {
        let (factor, measured) = scaling.factor(record.threads, threads);
        Change::Cores { threads, factor, measured }
    })
}

/// Without a replay: computing scales, everything else stays.
fn resident(record: &RunRecord, change: Change) -> Answer {
    let factor = if let Change::Cores { factor, .. } = change { factor } else { 1.0 };
    let time_s = |phase: &PhaseRecord| {
        let computing = phase.compute_s + phase.dense_s();
        phase.time_s - computing + computing / factor
    };
    let gain = |phase: &PhaseRecord| over(phase.time_s, time_s(phase));
    let before = record.prefill.time_s + record.decode.time_s;
    let after = time_s(&record.prefill) + time_s(&record.decode);
    Answer {
        change,
        prefill_tokens_per_s: record.prefill.tokens_per_s() * gain(&record.prefill),
        decode_tokens_per_s: record.decode.tokens_per_s() * gain(&record.decode),
        hit_rate: record.prefill.plus(&record.decode).hit_rate(),
        gain: over(before, after),
    }
}

/// The unchanged run in virtual time, with which all others are compared.
struct Replays<'a> {
    record: &'a RunRecord,
    trace: &'a Trace,
    as_it_was: Rerun,
    outcome: Outcome,
}

impl<'a> Replays<'a> {
    fn new(record: &'a RunRecord, trace: &'a Trace) -> Result<Self, RerunError> {
        let as_it_was = Rerun::of(record)?;
        let outcome = as_it_was.run(trace, None)?;
        Ok(Self { record, trace, as_it_was, outcome })
    }

    fn all(&self, scaling: &Scaling) -> Result<WhatIf, RerunError> {
        let error = |real: &PhaseRecord, simulated: &PhaseOutcome| {
            (real.tokens > 0 && simulated.tokens > 0)
                .then(|| over(simulated.tokens_per_s(), real.tokens_per_s()) - 1.0)
        };
        let changes = self.changes(scaling);
        let answers = changes.into_iter().map(|(change, rerun)| {
            let outcome = rerun.run(self.trace, None)?;
            Ok::<_, RerunError>(self.answer(change, &outcome))
        });
        let gpus = with_gpus(self.record, &self.as_it_was, self.trace).into_iter();
        let answers = answers.chain(gpus.map(|gpu| {
            let outcome = gpu.run(self.trace)?;
            Ok(self.answer(gpu.change, &outcome))
        }));
        Ok(WhatIf {
            prefill_error: error(&self.record.prefill, &self.outcome.prefill),
            decode_error: error(&self.record.decode, &self.outcome.decode),
            answers: answers.collect::<Result<_, _>>()?,
        })
    }

    fn answer(&self, change: Change, outcome: &Outcome) -> Answer {
        let (before, real) = (&self.outcome, self.record);
        let gain = |before: &PhaseOutcome, after: &PhaseOutcome| {
            over(before.time.as_s(), after.time.as_s())
        };
        let prefill = gain(&before.prefill, &outcome.prefill);
        let decode = gain(&before.decode, &outcome.decode);
        let then_s = real.prefill.time_s / prefill + real.decode.time_s / decode;
        Answer {
            change,
            prefill_tokens_per_s: real.prefill.tokens_per_s() * prefill,
            decode_tokens_per_s: real.decode.tokens_per_s() * decode,
            hit_rate: outcome.hit_rate(),
            gain: over(real.prefill.time_s + real.decode.time_s, then_s),
        }
    }

    fn changes(&self, scaling: &Scaling) -> Vec<(Change, Rerun)> {
        let mut changes = self.memory();
        let disk = self.as_it_was.clone();
        let factor = DISK_FACTOR;
        let disk = Rerun {
            prefill: faster_disk(disk.prefill, factor),
            decode: faster_disk(disk.decode, factor),
            ..disk
        };
        changes.push((Change::Disk { factor }, disk));
        changes.extend(core_changes(self.record, scaling).map(|change| self.cores(change)));
        changes.extend(self.policies());
        changes.extend(self.prefetchers());
        changes
    }

    fn memory(&self) -> Vec<(Change, Rerun)> {
        let all = self.record.expert_layers * u32::from(self.trace.header.experts);
        let now = self.as_it_was.cache_slots;
        let with = |cache_slots| Rerun { cache_slots, ..self.as_it_was.clone() };
        let mut changes = Vec::new();
        for factor in MEMORY_FACTORS {
            let limit = self.record.memory_bytes;
            let held = limit.unwrap_or(u64::from(now) * self.record.expert_bytes) as f64;
            let more = (factor - 1.0) * held / self.record.expert_bytes.max(1) as f64;
            let experts = now.saturating_add(more as u32);
            if experts > now && experts < all {
                let memory_bytes = limit.map(|bytes| (bytes as f64 * factor) as u64);
                changes.push((Change::Memory { factor, experts, memory_bytes }, with(experts)));
            }
        }
        if now < all {
            changes.push((Change::AllExperts { experts: all }, with(all)));
        }
        changes
    }

    fn cores(&self, change: Change) -> (Change, Rerun) {
        let factor = if let Change::Cores { factor, .. } = change { factor } else { 1.0 };
        let scale = |costs: PhaseCosts, phase: &PhaseRecord| {
            // `dense` holds overhead as well, which cores do not change.
            let (dense, overhead) = (phase.dense_s(), phase.overhead_s());
            let rest = over(dense / factor + overhead, dense + overhead);
            let mut costs = costs;
            costs.expert =
                ComputeCost { per_token_us: costs.expert.per_token_us / factor, ..costs.expert };
            costs.dense.layer_per_token_us *= rest;
            costs
        };
        let rerun = Rerun {
            prefill: scale(self.as_it_was.prefill, &self.record.prefill),
            decode: scale(self.as_it_was.decode, &self.record.decode),
            ..self.as_it_was.clone()
        };
        (change, rerun)
    }

    fn policies(&self) -> impl Iterator<Item = (Change, Rerun)> + '_ {
        let others = PolicyChoice::ALL.iter().copied();
        let others = others.filter(|policy| policy.name() != self.as_it_was.policy.name());
        others.map(|policy| {
            let rerun = Rerun { policy, ..self.as_it_was.clone() };
            (Change::Policy { name: policy.name() }, rerun)
        })
    }

    /// Guesses off, or on by what needs no prediction; predictions only where the run says how
    /// good they are. The memory stays the same: slots for guesses come from the cache.
    fn prefetchers(&self) -> Vec<(Change, Rerun)> {
        let now = self.as_it_was.prefetch;
        let known = self.record.streaming.as_ref().is_some_and(|s| s.predicted.is_some());
        let all = PrefetchChoice::ALL.iter().copied().filter(|choice| *choice != now);
        let fair = all.filter(|choice| known || !choice.uses_predictions());
        fair.map(|choice| (Change::Prefetch { name: choice.name() }, self.with_prefetch(choice)))
            .collect()
    }

    fn with_prefetch(&self, prefetch: PrefetchChoice) -> Rerun {
        let mut rerun = Rerun { prefetch, ..self.as_it_was.clone() };
        let held = u32::from(rerun.limits.prefetch_slots);
        let all = rerun.cache_slots + held;
        // The run's slots are these and the one for experts that do not stay.
        let default = SchedulerLimits::beyond_ram(all + 1, prefetch);
        let wanted = match prefetch {
            PrefetchChoice::None => 0,
            _ if held > 0 => held,
            _ => u32::from(default.prefetch_slots),
        };
        rerun.cache_slots = (all - wanted).max(1);
        rerun.limits.staging_slots = rerun.limits.staging_slots - held as u16 + wanted as u16;
        rerun.limits.prefetch_slots = wanted as u16;
        rerun.limits.guesses_in_flight =
            rerun.limits.guesses_in_flight.max(default.guesses_in_flight);
        rerun
    }
}

fn faster_disk(costs: PhaseCosts, factor: f64) -> PhaseCosts {
    // Microseconds for 10⁹ bytes are milliseconds for a megabyte: read back as a rate.
    let gb_per_s = 1e6 / costs.disk.us(1_000_000_000);
    PhaseCosts { disk: TransferCost::new(0.0, gb_per_s * factor), ..costs }
}

/// 1 where there is nothing to compare.
fn over(a: f64, b: f64) -> f64 {
    if a > 0.0 && b > 0.0 { a / b } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{record, trace};

    fn gain(found: &WhatIf, is: impl Fn(&Change) -> bool) -> f64 {
        found.answers.iter().find(|answer| is(&answer.change)).map_or(0.0, |answer| answer.gain)
    }

    #[test]
    fn more_memory_helps_and_all_of_it_most() {
        let found = what_if(&record(), Some(&trace()), &Scaling::default()).unwrap();
        let more = gain(&found, |c| matches!(c, Change::Memory { experts: 36, .. }));
        let all = gain(&found, |c| matches!(c, Change::AllExperts { experts: 64 }));
        assert!(more > 1.05 && all > more, "{more} {all}");
        let names = |c: &Change| matches!(c, Change::Memory { factor, memory_bytes: Some(60_000_000), .. } if *factor == 1.5);
        assert!(found.answers.iter().any(|answer| names(&answer.change)));
        assert!(found.decode_error.is_some() && found.prefill_error.is_some());
    }

    #[test]
    fn faster_hands_help_and_fewer_do_not() {
        let found = what_if(&record(), Some(&trace()), &Scaling::default()).unwrap();
        let disk = gain(&found, |c| matches!(c, Change::Disk { .. }));
        let cores = gain(&found, |c| matches!(c, Change::Cores { threads: 4, .. }));
        let fewer = gain(&found, |c| matches!(c, Change::Cores { threads: 1, .. }));
        assert!((1.05..2.0).contains(&disk), "{disk}");
        assert!((1.05..2.0).contains(&cores) && (0.5..0.95).contains(&fewer), "{cores} {fewer}");
    }

    #[test]
    fn every_other_policy_and_fair_prefetcher_is_asked() {
        let found = what_if(&record(), Some(&trace()), &Scaling::default()).unwrap();
        let names: Vec<&str> = found.answers.iter().filter_map(|a| name(&a.change)).collect();
        let expected =
            ["lfu", "lfru", "mrs", "blend", "previous-token", "prefill-counted", "refill"];
        assert_eq!(names, expected);
        let mut predicted = record();
        predicted.streaming.as_mut().unwrap().predicted = Some(0.8);
        let found = what_if(&predicted, Some(&trace()), &Scaling::default()).unwrap();
        assert!(found.answers.iter().any(|a| name(&a.change) == Some("next-layer")));
    }

    fn name(change: &Change) -> Option<&'static str> {
        match change {
            Change::Policy { name } | Change::Prefetch { name } => Some(name),
            _ => None,
        }
    }

    #[test]
    fn a_resident_run_scales_its_computing_as_measured() {
        let resident = RunRecord { streaming: None, ..record() };
        let scaling = Scaling { speeds: vec![(1, 10.0), (2, 15.0)] };
        let found = what_if(&resident, None, &scaling).unwrap();
        let [half, twice] = &found.answers[..] else { panic!("{found:?}") };
        assert_eq!(half.change, Change::Cores { threads: 1, factor: 10.0 / 15.0, measured: true });
        assert_eq!(twice.change, Change::Cores { threads: 4, factor: 2.0, measured: false });
        // 0.6 of 2.0 s scale: 1.4 + 0.3.
        assert!((twice.gain - 2.0 / 1.7).abs() < 1e-9, "{twice:?}");
        assert_eq!((found.prefill_error, found.decode_error), (None, None));
    }

    #[test]
    fn guesses_take_their_slots_from_the_cache() {
        let (record, trace) = (record(), trace());
        let replays = Replays::new(&record, &trace).unwrap();
        let on = replays.with_prefetch(PrefetchChoice::PreviousToken);
        assert_eq!((on.cache_slots, on.limits.staging_slots, on.limits.prefetch_slots), (12, 5, 4));
    }

    #[test]
    fn a_gpu_helps_and_a_larger_one_more() {
        // 12.8 GB of experts: the larger GPU holds all, the smaller needs RAM for the rest.
        let record = RunRecord { expert_bytes: 200_000_000, ..record() };
        let found = what_if(&record, Some(&trace()), &Scaling::default()).unwrap();
        let gain = |is: &dyn Fn(&Change) -> bool| {
            found.answers.iter().find(|answer| is(&answer.change)).map_or(0.0, |found| found.gain)
        };
        let small = gain(&|c| {
            matches!(c, Change::Gpu { like: "laptop-8gb-gpu", experts: 34, more_ram: true, .. })
        });
        let large = gain(&|c| matches!(c, Change::Gpu { experts: 64, more_ram: false, .. }));
        assert!(small > 1.5 && large > small, "{small} {large}");
    }
}
