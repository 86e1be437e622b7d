//! What computes the blocks of a session: a first unit what it takes, the rest the machine's
//! executor where experts are on disk or on devices, else the CPU alone, whole blocks at a time.
//! Watches and counts; chooses nothing.

use crate::blocks::figures::{BlockTimes, SharedFigures, added};
use crate::blocks::first_unit::FirstUnit;
use crate::blocks::machine::session::{BlocksDone, MachineBlocks};
use crate::blocks::routing::{RoutedBlock, RoutingWatcher};
use crate::blocks::step::CurrentStep;
use crate::blocks::way::way_of;
use crate::clock::now;
use motley_ggml::{BlockError, BlockExecutor, ComputeOutcome, CpuUnit, ExpertBlock, SubsetError};
use motley_plan::ExpertKernels;
use motley_sched::SchedulerSetup;
use motley_trace::PhaseRecord;
use std::sync::Arc;
use std::time::Duration;

/// Executor of one session's blocks.
pub(crate) struct Drive {
    /// `None` when llama.cpp holds all expert bytes and no device has some.
    machine: Option<MachineBlocks>,
    /// A unit that takes rows before the others.
    first_unit: Option<Box<dyn FirstUnit>>,
    watcher: Option<Box<dyn RoutingWatcher>>,
    routed: RoutedBlock,
    figures: Arc<SharedFigures>,
    /// What was done when the last block ended: the disk goes on between blocks, and what it does
    /// there belongs to the next.
    counted: BlocksDone,
    step: Arc<CurrentStep>,
    /// How the CPU computes experts.
    kernels: ExpertKernels,
}

impl Drive {
    pub(crate) fn new(
        machine: Option<MachineBlocks>,
        watcher: Option<Box<dyn RoutingWatcher>>,
        figures: Arc<SharedFigures>,
    ) -> Self {
        let step = Arc::default();
        let (routed, kernels) = (RoutedBlock::default(), ExpertKernels::exact());
        let counted = BlocksDone::default();
        Self { machine, counted, first_unit: None, watcher, routed, figures, step, kernels }
    }

    /// The CPU computes experts in this way; as the bare engine does otherwise.
    pub(crate) fn with_kernels(self, kernels: ExpertKernels) -> Self {
        Self { kernels, ..self }
    }

    /// Which blocks of a context of `model` come here: all when somebody watches or shares them or
    /// they are streamed; else those that are computed faster than llama.cpp would, and those it
    /// cannot compute.
    #[cfg(feature = "llama")]
    pub(crate) fn claims(
        &self,
        spec: &motley_model::ModelSpec,
        model: &motley_ggml::Model,
    ) -> motley_ggml::Claims {
        use motley_ggml::Claims;

        if self.machine.is_some() || self.first_unit.is_some() || self.watcher.is_some() {
            return Claims::all();
        }
        let from_tokens = self.kernels.from_tokens(spec.experts, spec.used);
        let from = |layer: usize| if model.is_apart(layer as u32) { 1 } else { from_tokens };
        Claims::from_tokens((0..spec.layers.len()).map(from))
    }

    /// The phase of batches comes through `step`.
    pub(crate) fn with_step(self, step: Arc<CurrentStep>) -> Self {
        Self { step, ..self }
    }

    /// Who decides where experts are read from disk.
    pub(crate) fn setup(&self) -> Option<SchedulerSetup> {
        self.machine.as_ref().and_then(MachineBlocks::stream_setup)
    }

    pub(crate) fn with_first_unit(self, first_unit: Option<Box<dyn FirstUnit>>) -> Self {
        Self { first_unit, ..self }
    }
}

impl BlockExecutor for Drive {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        if let Some(watcher) = &mut self.watcher {
            self.routed.refill(self.step.phase(), block);
            watcher.on_routed(&self.routed);
        }
        let layer = block.layer();
        let failed = |reason| BlockError { layer, reason };
        let Some(unit) = &mut self.first_unit else { return self.run_rest(block, cpu) };
        let started = now();
        let begun = unit.begin(self.step.phase(), block, cpu).map_err(failed)?;
        let mut took = started.elapsed();
        let outcome = self.run_rest(block, cpu);
        let mut left = false;
        if let Some(unit) = self.first_unit.as_mut().filter(|_| begun) {
            let started = now();
            left = unit.finish(block).map_err(failed)?;
            took += started.elapsed();
        }
        self.count_first_unit(took);
        match outcome {
            Ok(ComputeOutcome::Done) if left => self.run_rest(block, cpu),
            other => other,
        }
    }
}

impl Drive {
    /// Everything but what the first unit took.
    fn run_rest(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let Some(machine) = &mut self.machine else { return self.run_in_memory(block, cpu) };
        let begun = now();
        let outcome = machine.run(self.step.phase(), block, cpu, &self.kernels);
        if matches!(outcome, Ok(None)) {
            return self.run_in_memory(block, cpu);
        }
        let took = begun.elapsed();
        let after = machine.done();
        let before = std::mem::replace(&mut self.counted, after);
        if after.changed {
            self.figures.note_model_changed();
        }
        let expert_tokens = block.rows().count() as u64;
        let added = match &after.stream {
            None => in_memory(took, expert_tokens),
            Some(stream) => {
                let times = BlockTimes {
                    block: took,
                    compute: after.compute - before.compute,
                    stall: after.stall - before.stall,
                };
                added(times, &before.stream.unwrap_or_default(), stream, expert_tokens)
            }
        };
        self.figures.add(self.step.phase(), &added.plus(&work_of(cpu)), after.stream);
        let failed = |reason| BlockError { layer: block.layer(), reason };
        outcome.map(|outcome| outcome.unwrap_or(ComputeOutcome::Done)).map_err(failed)
    }

    /// The rest of the block counts it.
    fn count_first_unit(&self, took: Duration) {
        let took = took.as_secs_f64();
        let added = PhaseRecord { blocks_s: took, first_unit_s: took, ..PhaseRecord::default() };
        self.figures.add(self.step.phase(), &added, None);
    }

    /// llama.cpp holds all bytes: the CPU computes the block whole.
    fn run_in_memory(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let begun = now();
        let layer = block.layer();
        let failed = |error: SubsetError| BlockError { layer, reason: error.to_string() };
        let way = way_of(&self.kernels, block);
        let outcome = cpu.compute(block, way).map_err(failed)?;
        let added = in_memory(begun.elapsed(), block.rows().count() as u64).plus(&work_of(cpu));
        self.figures.add(self.step.phase(), &added, None);
        Ok(outcome)
    }
}

/// What a block adds whose bytes were all in memory.
fn in_memory(took: Duration, expert_tokens: u64) -> PhaseRecord {
    let took = took.as_secs_f64();
    PhaseRecord {
        blocks: 1,
        blocks_s: took,
        compute_s: took,
        expert_tokens,
        ..PhaseRecord::default()
    }
}

/// What threads did in blocks of one expert since the last call.
fn work_of(cpu: &mut CpuUnit) -> PhaseRecord {
    let work = cpu.take_work();
    PhaseRecord {
        in_blocks: u64::from(work.blocks > 0),
        kernels_s: work.kernels.as_secs_f64(),
        moving_s: work.moving.as_secs_f64(),
        waiting_s: work.waiting.as_secs_f64(),
        ..PhaseRecord::default()
    }
}
