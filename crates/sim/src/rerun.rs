//! A recorded run again, in virtual time: the same routing through the same scheduler, with the
//! costs measured in that run (M1). How far the simulated speed is from the real one says how
//! much its answers to "what if" are worth.

use motley_cost::{ComputeCost, TransferCost};
use motley_sched::cache::belady::Belady;
use motley_sched::cache::{CachePolicy, Capacity, ExpertCache, PolicyChoice};
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::spans::Spans;
use motley_sched::strategy::OnDemand;
use motley_sched::{
    Costs, Named, Scheduler, SchedulerLimits, SchedulerParts, TierParts, UnknownName,
};
use motley_trace::{PhaseRecord, RunRecord, Trace, WorkerRecord};
use serde::Serialize;

use crate::drive::{DriveError, drive};
use crate::hosts::recorded;
use crate::outcome::Outcome;
use crate::predictions::{LayersAhead, PredictionParams};
use crate::replay::replay;
use crate::world::{DenseCost, Truth, World};

/// Why a run cannot be run again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RerunError {
    /// All experts were in memory: there is no tier to simulate.
    #[error("nothing was streamed in this run; record one with --memory")]
    NotStreamed,
    /// The trace is of another model.
    #[error("the trace has {trace} tokens and the record {record}; are they of one run?")]
    OtherRun {
        /// Tokens of the trace.
        trace: u64,
        /// Tokens of the record.
        record: u64,
    },
    /// Tokens were guessed ahead: a trace does not tell which of them were taken back.
    #[error(
        "tokens were guessed ahead in this run, which cannot be replayed; record one with --speculate off"
    )]
    Speculated,
    /// What was routed is not what was read.
    #[error(
        "experts were left out in this run (--skip-cold), which its trace does not show; record one \
         without it"
    )]
    LeftOut,
    /// A policy or prefetcher this program does not have.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The drive failed.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// A run with everything that can be asked "what if" about.
#[derive(Debug, Clone, PartialEq)]
pub struct Rerun {
    /// Which experts stay.
    pub policy: PolicyChoice,
    /// What is read early.
    pub prefetch: PrefetchChoice,
    /// Experts that can stay.
    pub cache_slots: u32,
    /// Other limits of the scheduler.
    pub limits: SchedulerLimits,
    /// Bytes of one expert.
    pub expert_bytes: u64,
    /// What prompts cost.
    pub prefill: PhaseCosts,
    /// What single tokens cost.
    pub decode: PhaseCosts,
    /// Share of the next layer's experts that are predicted.
    pub prediction_accuracy: f64,
    /// Other machines, as they were measured.
    pub workers: Vec<WorkerRecord>,
}

/// What one phase was measured to cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseCosts {
    /// One expert on the CPU.
    pub expert: ComputeCost,
    pub disk: TransferCost,
    /// Everything else.
    pub dense: DenseCost,
}

impl Rerun {
    /// The settings and measured costs of `record`.
    pub fn of(record: &RunRecord) -> Result<Self, RerunError> {
        let streaming = record.streaming.as_ref().ok_or(RerunError::NotStreamed)?;
        check_one_by_one(record)?;
        Ok(Self {
            policy: streaming.policy.parse()?,
            prefetch: streaming.prefetch.parse()?,
            cache_slots: streaming.cache_slots,
            limits: SchedulerLimits {
                loads_in_flight: streaming.loads_in_flight,
                staging_slots: streaming.staging_slots,
                prefetch_slots: streaming.prefetch_slots,
                guesses_in_flight: streaming.guesses_in_flight,
                load_attempts: 1,
            },
            expert_bytes: record.expert_bytes,
            prefill: PhaseCosts::of(&record.prefill, record),
            decode: PhaseCosts::of(&record.decode, record),
            prediction_accuracy: streaming.predicted.unwrap_or(0.0),
            workers: record.workers.clone(),
        })
    }

    /// Drives the scheduler through `trace` under these settings, from an empty cache.
    pub fn run(&self, trace: &Trace, spans: Option<&mut Spans>) -> Result<Outcome, RerunError> {
        let costs =
            |phase: &PhaseCosts| Costs::one_tier(phase.expert, phase.disk, None, self.expert_bytes);
        let prefill = Truth { costs: costs(&self.prefill), dense: self.prefill.dense };
        let decode = costs(&self.decode);
        let grid = trace.header.grid();
        let capacity = Capacity::Global { slots: self.cache_slots };
        let mut scheduler = Scheduler::new(SchedulerParts {
            costs: decode.clone(),
            tiers: vec![TierParts {
                cache: ExpertCache::new(grid, capacity, self.policy.build(&trace.header)),
                prefetcher: self.prefetch.build(grid),
                limits: self.limits,
            }],
            strategy: Box::new(OnDemand::default()),
        });
        let layers = LayersAhead::asked(|phase| self.prefetch.layers_ahead_in(phase));
        let predictions = PredictionParams { layers, accuracy: self.prediction_accuracy, seed: 0 };
        let world = World::new(decode, self.decode.dense).with_prefill(prefill);
        let mut world = world.with_predictions(predictions);
        if let Some(hosts) = recorded(&self.workers, &trace.header) {
            world = world.with_hosts(hosts);
        }
        Ok(drive(&mut trace.source(), &mut scheduler, &mut world, spans)?)
    }
}

/// Share of the decoded tokens' experts a policy had resident, without guesses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyHits {
    /// Its name; `belady` is the bound no policy passes.
    pub policy: String,
    pub hit_rate: f64,
}

impl Rerun {
    /// Every policy with this run's slots, on the whole trace from an empty cache. Router scores
    /// are not in the trace, so `mrs` goes by the chosen experts here.
    pub fn policies(&self, trace: &Trace) -> Result<Vec<PolicyHits>, RerunError> {
        let trace = &self.at_home(trace);
        let online = PolicyChoice::ALL.iter();
        let online = online.map(|choice| (choice.name(), choice.build(&trace.header)));
        let bound = Belady::new(trace).map(|bound| ("belady", Box::new(bound) as _));
        let all = online.chain(bound);
        all.map(|(name, policy): (&str, Box<dyn CachePolicy>)| {
            let capacity = Capacity::Global { slots: self.cache_slots };
            let mut cache = ExpertCache::new(trace.header.grid(), capacity, policy);
            let counts = replay(&mut trace.source(), &mut cache, 0).map_err(DriveError::Trace)?;
            Ok(PolicyHits { policy: name.to_owned(), hit_rate: counts.decode.rate() })
        })
        .collect()
    }
}

impl Rerun {
    /// What workers leave of a trace.
    fn at_home(&self, trace: &Trace) -> Trace {
        let mut own = trace.clone();
        if let Some(mut hosts) = recorded(&self.workers, &trace.header) {
            for visit in &mut own.visits {
                let _away = hosts.take(visit);
            }
        }
        own
    }
}

/// Checks that `trace` was recorded in the run of `record`.
pub fn check_pair(record: &RunRecord, trace: &Trace) -> Result<(), RerunError> {
    check_one_by_one(record)?;
    if record.streaming.as_ref().is_some_and(|streaming| streaming.skip_cold.is_some()) {
        return Err(RerunError::LeftOut);
    }
    let tokens = trace_tokens(trace);
    let record = record.prefill.tokens + record.decode.tokens;
    if tokens == record { Ok(()) } else { Err(RerunError::OtherRun { trace: tokens, record }) }
}

/// Whether every pass that decoded computed one token.
fn check_one_by_one(record: &RunRecord) -> Result<(), RerunError> {
    let guessed = record.speculation.is_some_and(|made| made.guessed > 0);
    if guessed { Err(RerunError::Speculated) } else { Ok(()) }
}

/// Tokens computed in a trace.
pub fn trace_tokens(trace: &Trace) -> u64 {
    let first_layer = trace.visits.iter().map(|visit| visit.layer).min().unwrap_or(0);
    let of_layer = trace.visits.iter().filter(|visit| visit.layer == first_layer);
    of_layer.map(|visit| visit.tokens() as u64).sum()
}

impl PhaseCosts {
    /// An expert costs by its tokens, what is neither computed nor waited for by the pass's;
    /// a phase that did not happen costs what the disk of the other says and nothing else.
    fn of(phase: &PhaseRecord, record: &RunRecord) -> Self {
        let both = record.prefill.plus(&record.decode);
        let own_bytes_per_s = phase.disk_bytes_per_s();
        let bytes_per_s =
            if own_bytes_per_s > 0.0 { own_bytes_per_s } else { both.disk_bytes_per_s() };
        let passes = phase.blocks as f64 / f64::from(record.expert_layers.max(1));
        let tokens_per_pass = phase.tokens as f64 / passes.max(1.0);
        let rest_us = 1e6 * (phase.dense_s() + phase.overhead_s()) / phase.blocks.max(1) as f64;
        Self {
            expert: ComputeCost {
                launch_us: 0.0,
                per_token_us: 1e6 * phase.compute_s / phase.expert_tokens.max(1) as f64,
                floor_us: 0.0,
            },
            disk: TransferCost::new(0.0, (bytes_per_s / 1e9).max(1e-3)),
            dense: DenseCost {
                layer_us: 0.0,
                layer_per_token_us: rest_us / tokens_per_pass.max(1.0),
                pass_us: 0.0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::trace;
    use motley_trace::{SpeculationRecord, StreamingRecord, WorkerTimes};

    fn record() -> RunRecord {
        let phase = |tokens, blocks, experts, expert_tokens| PhaseRecord {
            tokens,
            blocks,
            experts,
            expert_tokens,
            ..PhaseRecord::default()
        };
        RunRecord {
            motley_run: 1,
            model: "synthetic".into(),
            expert_layers: 4,
            expert_bytes: 1_000_000,
            threads: 2,
            memory_bytes: None,
            shared: None,
            workers: Vec::new(),
            layouts: Vec::new(),
            streaming: Some(StreamingRecord {
                policy: "lru".into(),
                prefetch: "none".into(),
                cache_slots: 16,
                cache_slots_least: None,
                skip_cold: None,
                staging_slots: 1,
                prefetch_slots: 0,
                loads_in_flight: 64,
                guesses_in_flight: 1,
                predicted: None,
            }),
            speculation: None,
            sampling_s: 0.0,
            energy: None,
            prefill: PhaseRecord {
                time_s: 1.0,
                blocks_s: 0.8,
                compute_s: 0.4,
                stall_s: 0.4,
                disk_bytes: 400_000_000,
                disk_busy_s: 0.4,
                ..phase(64, 4, 100, 400)
            },
            decode: PhaseRecord {
                time_s: 2.0,
                blocks_s: 1.6,
                compute_s: 0.4,
                stall_s: 1.0,
                disk_bytes: 1_600_000_000,
                disk_busy_s: 1.6,
                ..phase(100, 400, 1600, 1600)
            },
        }
    }

    #[test]
    fn costs_go_through_what_was_measured() {
        let rerun = Rerun::of(&record()).unwrap();
        // 0.4 s over 1600 tokens, and over 400.
        assert!((rerun.decode.expert.us(1) - 250.0).abs() < 1e-6, "{:?}", rerun.decode);
        assert!((rerun.prefill.expert.us(4) - 4000.0).abs() < 1e-6, "{:?}", rerun.prefill);
        assert!((rerun.decode.disk.us(1_000_000) - 1000.0).abs() < 1e-6, "{:?}", rerun.decode);
        // 0.6 s beside computing and waiting over 400 blocks; 0.2 s over 4 blocks of 64 tokens.
        assert!((rerun.decode.dense.before_layer(1).as_us() - 1500.0).abs() < 1.0);
        assert!((rerun.prefill.dense.before_layer(64).as_us() - 50_000.0).abs() < 1.0);
    }

    #[test]
    fn more_slots_and_a_faster_disk_help() {
        let trace = trace();
        let rerun = Rerun::of(&record()).unwrap();
        let speed = |rerun: &Rerun| rerun.run(&trace, None).unwrap().decode.tokens_per_s();
        let as_it_was = speed(&rerun);
        let faster = PhaseCosts { disk: TransferCost::new(0.0, 4.0), ..rerun.decode };
        assert!(speed(&Rerun { cache_slots: 64, ..rerun.clone() }) > as_it_was);
        assert!(speed(&Rerun { decode: faster, ..rerun.clone() }) > as_it_was);
    }

    #[test]
    fn workers_compute_what_they_keep_in_the_time_it_took() {
        let trace = trace();
        let rerun = Rerun::of(&record()).unwrap();
        let all = WorkerRecord {
            keeps: (0..trace.header.layers).map(|layer| (layer, 0, trace.header.experts)).collect(),
            requests: 100,
            rows: 400,
            exchange_us: 600_000,
            compute_us: 500_000,
            decode: WorkerTimes {
                requests: 100,
                rows: 400,
                exchange_us: 600_000,
                compute_us: 500_000,
            },
            ..WorkerRecord::default()
        };
        let away = Rerun { workers: vec![all.clone()], ..rerun.clone() };
        let outcome = away.run(&trace, None).unwrap();
        let used = f64::from(trace.header.k);
        // In each layer what is not routed, 1 ms on the wire, and 1.25 ms a row.
        let layers = f64::from(trace.header.layers);
        let token_us = layers * (1500.0 + 1000.0 + used * 1250.0);
        let found_us = 1e6 / outcome.decode.tokens_per_s();
        assert!((found_us / token_us - 1.0).abs() < 1e-3, "{found_us} {token_us}");
        assert_eq!(outcome.hosts.len(), 1);
        // Nothing is left for a cache here.
        let none = away.policies(&trace).unwrap();
        assert!(none.iter().all(|policy| policy.hit_rate == 0.0), "{none:?}");
        let silent = WorkerRecord { requests: 0, decode: WorkerTimes::default(), ..all };
        let silent = Rerun { workers: vec![silent], ..rerun.clone() };
        let alone = |rerun: &Rerun| rerun.run(&trace, None).unwrap().decode.tokens_per_s();
        assert_eq!(alone(&silent), alone(&rerun));
    }

    #[test]
    fn no_policy_passes_the_bound() {
        let policies = Rerun::of(&record()).unwrap().policies(&trace()).unwrap();
        let bound = policies.last().expect("the bound is last");
        assert_eq!(bound.policy, "belady");
        assert_eq!(policies.len(), PolicyChoice::ALL.len() + 1);
        assert!(policies.iter().all(|p| p.hit_rate <= bound.hit_rate && p.hit_rate > 0.0));
    }

    #[test]
    fn a_resident_run_one_with_guesses_and_a_foreign_trace_are_refused() {
        let resident = RunRecord { streaming: None, ..record() };
        assert!(matches!(Rerun::of(&resident), Err(RerunError::NotStreamed)));
        let guesses =
            |guessed| Some(SpeculationRecord { passes: 9, guessed, ..Default::default() });
        let speculated = RunRecord { speculation: guesses(3), ..record() };
        assert!(matches!(Rerun::of(&speculated), Err(RerunError::Speculated)));
        assert!(Rerun::of(&RunRecord { speculation: guesses(0), ..record() }).is_ok());
        let trace = trace();
        let error = check_pair(&record(), &trace).unwrap_err();
        assert!(error.to_string().contains("of one run"), "{error}");
    }
}
