//! The time of one phase of a run, cut into parts that add up to it. Arithmetic on a record.

use motley_trace::{PhaseRecord, RunRecord};
use serde::Serialize;

/// Share of the memory's measured rate from which computing counts as bound by memory.
const MEMORY_BOUND_SHARE: f64 = 0.6;

/// What time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimePart {
    /// Attention, norms, routers, shared experts, the output matrix: llama.cpp's own work.
    Dense,
    /// Reading the weights of routed experts from memory, as far as the memory's rate explains
    /// the time of computing them.
    Memory,
    /// The rest of computing routed experts.
    Compute,
    /// Rows of one expert gathered, and put back in their places; its weights rearranged for them.
    Moving,
    /// Threads that wait for each other at the end of a block of experts.
    Waiting,
    /// Waiting for the disk with nothing to compute.
    Disk,
    /// Copies between devices.
    Transfer,
    /// Rows of other machines or static graphs: sending them, and waiting for them with nothing
    /// else to compute.
    FirstUnit,
    /// Inside expert blocks, neither computing nor waiting: bookkeeping, barriers, wake-ups.
    Sync,
    /// A draft model, which follows the text and guesses tokens.
    Draft,
    /// Choosing tokens.
    Sampling,
}

impl TimePart {
    /// All of them, in the order of a page.
    pub const ALL: [Self; 11] = [
        Self::Dense,
        Self::Compute,
        Self::Moving,
        Self::Waiting,
        Self::Memory,
        Self::Disk,
        Self::Transfer,
        Self::FirstUnit,
        Self::Sync,
        Self::Draft,
        Self::Sampling,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense layers",
            Self::Compute => "experts, compute",
            Self::Moving => "experts, gather",
            Self::Waiting => "experts, barriers",
            Self::Memory => "experts, memory",
            Self::Disk => "waiting for disk",
            Self::Transfer => "transfer",
            Self::FirstUnit => "workers, graphs",
            Self::Sync => "sync and overhead",
            Self::Draft => "draft model",
            Self::Sampling => "sampling",
        }
    }
}

/// What a phase waits for most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// The rate of the disk.
    Disk,
    /// The rate of memory.
    Memory,
    /// Arithmetic, or memory where its rate is not known.
    Compute,
    /// Other machines, or static graphs.
    FirstUnit,
    /// Waiting of threads for each other and bookkeeping.
    Sync,
    /// A draft model.
    Draft,
    /// Choosing tokens.
    Sampling,
    /// Nothing happened.
    Nothing,
}

impl Bottleneck {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Memory => "memory",
            Self::Compute => "computing",
            Self::FirstUnit => "workers or static graphs",
            Self::Sync => "sync and overhead",
            Self::Draft => "the draft model",
            Self::Sampling => "sampling",
            Self::Nothing => "nothing",
        }
    }
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseParts {
    pub tokens: u64,
    /// All its time, sampling included.
    pub time_s: f64,
    /// Its parts in the order of [`TimePart::ALL`]; they add up to `time_s`.
    pub parts: Vec<(TimePart, f64)>,
    pub bound: Bottleneck,
    /// Rate at which weights of experts were read from memory, where it is known how many.
    pub memory_gb_per_s: Option<f64>,
}

impl PhaseParts {
    /// The prompt's time. `memory_gb_per_s` is the machine's measured rate, where there is one.
    pub fn prefill(record: &RunRecord, memory_gb_per_s: Option<f64>) -> Self {
        Self::of(&record.prefill, record.expert_bytes, 0.0, memory_gb_per_s)
    }

    /// The time of single tokens, choosing them included.
    pub fn decode(record: &RunRecord, memory_gb_per_s: Option<f64>) -> Self {
        Self::of(&record.decode, record.expert_bytes, record.sampling_s, memory_gb_per_s)
    }

    /// Seconds of one part.
    pub fn seconds(&self, part: TimePart) -> f64 {
        self.parts.iter().find(|(of, _)| *of == part).map_or(0.0, |(_, seconds)| *seconds)
    }

    fn of(phase: &PhaseRecord, expert_bytes: u64, sampling_s: f64, rate: Option<f64>) -> Self {
        let read_bytes = experts_computed(phase) as f64 * expert_bytes as f64;
        let reached =
            (phase.compute_s > 0.0 && read_bytes > 0.0).then(|| read_bytes / phase.compute_s / 1e9);
        // Both are of the time of computing, and there only where experts were computed one by one.
        let moving_s = phase.moving_s.min(phase.compute_s);
        let waiting_s = phase.waiting_s.min(phase.compute_s - moving_s);
        let kernels_s = phase.compute_s - moving_s - waiting_s;
        let memory_s = rate.map_or(0.0, |rate| (read_bytes / (rate * 1e9)).min(kernels_s));
        let seconds = |part| match part {
            TimePart::Dense => phase.dense_s(),
            TimePart::Memory => memory_s,
            TimePart::Compute => kernels_s - memory_s,
            TimePart::Moving => moving_s,
            TimePart::Waiting => waiting_s,
            TimePart::Disk => phase.stall_s,
            TimePart::Transfer => 0.0,
            TimePart::FirstUnit => phase.first_unit_s,
            TimePart::Sync => phase.overhead_s(),
            TimePart::Draft => phase.draft_s,
            TimePart::Sampling => sampling_s,
        };
        Self {
            tokens: phase.tokens,
            time_s: phase.time_s + sampling_s,
            parts: TimePart::ALL.iter().map(|&part| (part, seconds(part))).collect(),
            bound: bound(phase, sampling_s, rate.zip(reached)),
            memory_gb_per_s: reached,
        }
    }
}

/// A token of its own uses each expert once; how many experts a prompt's block used is counted
/// only while streaming.
fn experts_computed(phase: &PhaseRecord) -> u64 {
    let single = phase.tokens > 0 && phase.experts == 0 && is_single(phase);
    if single { phase.expert_tokens } else { phase.experts }
}

/// Whether the blocks are of single tokens: then there are at least as many blocks as tokens.
fn is_single(phase: &PhaseRecord) -> bool {
    phase.blocks >= phase.tokens
}

fn bound(phase: &PhaseRecord, sampling_s: f64, rates: Option<(f64, f64)>) -> Bottleneck {
    if phase.time_s <= 0.0 {
        return Bottleneck::Nothing;
    }
    let by_memory = rates.is_some_and(|(most, reached)| reached >= MEMORY_BOUND_SHARE * most);
    let computing = if by_memory { Bottleneck::Memory } else { Bottleneck::Compute };
    let shares = [
        (computing, phase.compute_s + phase.dense_s()),
        (Bottleneck::Disk, phase.stall_s),
        (Bottleneck::FirstUnit, phase.first_unit_s),
        (Bottleneck::Sync, phase.overhead_s()),
        (Bottleneck::Draft, phase.draft_s),
        (Bottleneck::Sampling, sampling_s),
    ];
    let most = shares.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    most.map_or(Bottleneck::Nothing, |(bound, _)| *bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase() -> PhaseRecord {
        PhaseRecord {
            tokens: 10,
            time_s: 2.0,
            blocks: 20,
            blocks_s: 1.6,
            compute_s: 0.5,
            stall_s: 1.0,
            experts: 80,
            expert_tokens: 80,
            ..PhaseRecord::default()
        }
    }

    #[test]
    fn parts_add_up_and_the_largest_binds() {
        let parts = PhaseParts::of(&phase(), 100_000_000, 0.1, None);
        let sum: f64 = parts.parts.iter().map(|(_, seconds)| seconds).sum();
        assert!((sum - 2.1).abs() < 1e-9 && parts.time_s == 2.1, "{parts:?}");
        assert_eq!((parts.bound, parts.seconds(TimePart::Disk)), (Bottleneck::Disk, 1.0));
        assert_eq!(parts.seconds(TimePart::Memory), 0.0);
    }

    #[test]
    fn a_known_rate_of_memory_splits_computing() {
        let resident = PhaseRecord { stall_s: 0.0, blocks_s: 0.5, experts: 0, ..phase() };
        // 80 experts of 100 MB in 0.5 s are 16 GB/s; at 20 GB/s that takes 0.4 s.
        let parts = PhaseParts::of(&resident, 100_000_000, 0.0, Some(20.0));
        assert!((parts.seconds(TimePart::Memory) - 0.4).abs() < 1e-9, "{parts:?}");
        assert!((parts.seconds(TimePart::Compute) - 0.1).abs() < 1e-9, "{parts:?}");
        assert_eq!(parts.bound, Bottleneck::Memory);
        assert_eq!(
            PhaseParts::of(&resident, 100_000_000, 0.0, Some(40.0)).bound,
            Bottleneck::Compute
        );
    }

    #[test]
    fn experts_computed_one_by_one_have_their_parts() {
        let blocks = PhaseRecord { kernels_s: 0.3, moving_s: 0.05, waiting_s: 0.15, ..phase() };
        let parts = PhaseParts::of(&blocks, 100_000_000, 0.0, None);
        let of = |part| (1e3 * parts.seconds(part)).round();
        assert_eq!((of(TimePart::Compute), of(TimePart::Moving)), (300.0, 50.0));
        assert_eq!(of(TimePart::Waiting), 150.0);
        let sum: f64 = parts.parts.iter().map(|(_, seconds)| seconds).sum();
        assert!((sum - 2.0).abs() < 1e-9, "{parts:?}");
    }

    #[test]
    fn rows_of_other_machines_are_a_part() {
        let remote = PhaseRecord { first_unit_s: 1.1, stall_s: 0.0, ..phase() };
        let parts = PhaseParts::of(&remote, 100_000_000, 0.0, None);
        assert_eq!((parts.bound, parts.seconds(TimePart::FirstUnit)), (Bottleneck::FirstUnit, 1.1));
        let sum: f64 = parts.parts.iter().map(|(_, seconds)| seconds).sum();
        assert!((sum - 2.0).abs() < 1e-9, "{parts:?}");
    }

    #[test]
    fn a_draft_model_is_a_part() {
        let drafted = PhaseRecord { draft_s: 0.3, ..phase() };
        let parts = PhaseParts::of(&drafted, 100_000_000, 0.0, None);
        assert_eq!(parts.seconds(TimePart::Draft), 0.3);
        let sum: f64 = parts.parts.iter().map(|(_, seconds)| seconds).sum();
        assert!((sum - 2.0).abs() < 1e-9, "{parts:?}");
        let slow = PhaseRecord { draft_s: 3.0, time_s: 5.0, ..phase() };
        assert_eq!(PhaseParts::of(&slow, 1, 0.0, None).bound, Bottleneck::Draft);
    }

    #[test]
    fn nothing_binds_a_phase_that_was_not_there() {
        let parts = PhaseParts::of(&PhaseRecord::default(), 1, 0.0, Some(1.0));
        assert_eq!((parts.bound, parts.memory_gb_per_s), (Bottleneck::Nothing, None));
    }
}
