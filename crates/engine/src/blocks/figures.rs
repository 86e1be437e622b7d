//! Figures of a session: what its blocks took and read, phase by phase. Counts; decides
//! nothing.

use crate::blocks::predict::PredictionAccuracy;
use crate::blocks::resident::ExpertPlaces;
use motley_sched::scheduler::Counts;
use motley_sched::{LeftOut, Phase};
use motley_store::Counters;
use motley_trace::PhaseRecord;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Figures of a streaming session so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamFigures {
    /// What the scheduler counted.
    pub counts: Counts,
    /// What the disk did.
    pub disk: Counters,
    /// How good predictions of the next layer were, when there are any.
    pub predicted: Option<PredictionAccuracy>,
    /// Pairs that were not computed.
    pub left_out: LeftOut,
    /// Experts that may stay now; fewer than `slots_most` while memory is scarce (M3).
    pub slots: u32,
    /// The fewest that could.
    pub slots_least: u32,
    /// Experts that may stay when memory is plentiful.
    pub slots_most: u32,
    /// Memory of the slots in use.
    pub arena_bytes: u64,
}

/// Times of one block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlockTimes {
    /// All of it.
    pub(crate) block: Duration,
    pub(crate) compute: Duration,
    /// Waiting for the disk with nothing to compute.
    pub(crate) stall: Duration,
}

/// Sums of one session, phase by phase.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockSums {
    /// Blocks of prompts. `tokens` and `time_s` are the session's to fill.
    pub prefill: PhaseRecord,
    /// Blocks of decoding streams.
    pub decode: PhaseRecord,
    /// Streaming, when experts are read on demand.
    pub stream: Option<StreamFigures>,
}

/// The sums, shared between a session and its drive loop.
#[derive(Debug, Default)]
pub(crate) struct SharedFigures {
    sums: Mutex<BlockSums>,
    places: Option<ExpertPlaces>,
    model_changed: AtomicBool,
}

impl SharedFigures {
    /// Nothing counted yet; `places` when experts are not all in memory alone.
    pub(crate) fn new(places: Option<ExpertPlaces>) -> Self {
        Self { places, ..Self::default() }
    }

    /// A model file is not what was opened any more.
    pub(crate) fn note_model_changed(&self) {
        self.model_changed.store(true, Relaxed);
    }

    /// Whether a model file was seen to have changed.
    pub(crate) fn model_changed(&self) -> bool {
        self.model_changed.load(Relaxed)
    }

    pub(crate) fn get(&self) -> BlockSums {
        *self.sums.lock().expect("no panic holds this lock")
    }

    /// Where experts are; `None` when all are in memory alone.
    pub(crate) fn places(&self) -> Option<ExpertPlaces> {
        self.places.clone()
    }

    /// Adds one block of `phase`.
    pub(crate) fn add(&self, phase: Phase, added: &PhaseRecord, stream: Option<StreamFigures>) {
        let mut sums = self.sums.lock().expect("no panic holds this lock");
        let sum = match phase {
            Phase::Prefill => &mut sums.prefill,
            Phase::Decode => &mut sums.decode,
        };
        *sum = sum.plus(added);
        sums.stream = stream.or(sums.stream);
    }
}

/// What one block adds: its times, and what was counted since `before`.
pub(crate) fn added(
    times: BlockTimes,
    before: &StreamFigures,
    after: &StreamFigures,
    expert_tokens: u64,
) -> PhaseRecord {
    let disk = after.disk.since(&before.disk);
    let (counts, earlier) = (&after.counts, &before.counts);
    PhaseRecord {
        blocks: 1,
        blocks_s: times.block.as_secs_f64(),
        compute_s: times.compute.as_secs_f64(),
        stall_s: times.stall.as_secs_f64(),
        experts: counts.lookups - earlier.lookups,
        expert_tokens,
        left_out_pairs: after.left_out.pairs - before.left_out.pairs,
        left_out_weight: after.left_out.weight - before.left_out.weight,
        hits: counts.hits - earlier.hits,
        guessed_hits: counts.guessed_hits - earlier.guessed_hits,
        guessed_loads: counts.guessed_loads - earlier.guessed_loads,
        disk_bytes: disk.bytes,
        disk_busy_s: disk.busy.as_secs_f64(),
        ..PhaseRecord::default()
    }
}
