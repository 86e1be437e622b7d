//! The drive loop in real time: routing in, the scheduler's actions carried out on
//! disk and CPU. It starts what it is told and reports back when it has ended; it
//! chooses nothing. The simulator has a sibling of this file in virtual time.
//!
//! ggml computes experts fastest together, so everything that is ready is one
//! computation: each is reported as done when it is taken up, and all are computed
//! before the loop waits for the disk. Loads go on meanwhile.

use crate::blocks::experts::{Experts, Landed};
use crate::blocks::figures::{BlockTimes, SharedFigures, StreamFigures, added};
use crate::blocks::helper::BlockHelper;
use crate::blocks::loads::Loads;
use crate::blocks::predict::Predictor;
use crate::blocks::pressure::PressureWatch;
use crate::blocks::routing::{RoutedBlock, RoutingWatcher};
use crate::blocks::step::CurrentStep;
use crate::blocks::timeline::Timeline;
use crate::clock::now;
use motley_cost::Nanos;
use motley_ggml::{
    BlockError, BlockExecutor, Claims, ComputeOutcome, CpuUnit, ExpertBlock, Model, SubsetError,
    Way,
};
use motley_model::ModelSpec;
use motley_plan::ExpertKernels;
use motley_sched::prefetch::Prediction;
use motley_sched::{Action, Purpose, Routing, Scheduler, SchedulerSetup, Unit};
use motley_store::{FilledExpert, Priority};
use motley_trace::{ExpertKey, PhaseRecord};
use std::sync::Arc;
use std::time::Instant;

/// Executor of one session's blocks.
pub(crate) struct Drive {
    /// `None` when llama.cpp holds all expert bytes.
    streaming: Option<Streaming>,
    /// A unit beside the CPU, for blocks whose bytes llama.cpp holds.
    helper: Option<Box<dyn BlockHelper>>,
    watcher: Option<Box<dyn RoutingWatcher>>,
    routed: RoutedBlock,
    figures: Arc<SharedFigures>,
    step: Arc<CurrentStep>,
    /// How the CPU computes experts.
    kernels: ExpertKernels,
}

/// A scheduler and the hands it moves.
pub(crate) struct Streaming {
    pub(crate) scheduler: Scheduler,
    /// What it was built from.
    pub(crate) setup: SchedulerSetup,
    pub(crate) experts: Experts,
    /// Scores and predictions, for a policy or prefetcher that looks at them.
    pub(crate) predictor: Option<Predictor>,
    /// Whether what is there is computed while the rest arrives.
    pub(crate) overlap: bool,
    pub(crate) pressure: PressureWatch,
    /// Fewest slots the cache ever had.
    pub(crate) slots_least: u32,
    /// Slots beside the cache's.
    pub(crate) staging_slots: u32,
    pub(crate) started: Instant,
    /// Of the current block.
    pub(crate) times: BlockTimes,
    /// Figures when the last block ended: the disk goes on between blocks, and what it does
    /// there belongs to the next.
    pub(crate) counted: StreamFigures,
    pub(crate) scratch: Scratch,
    /// What ran when, if somebody wants to know.
    pub(crate) timeline: Option<Arc<Timeline>>,
    /// What the batch under way is.
    pub(crate) step: Arc<CurrentStep>,
    /// How the CPU computes what is ready.
    pub(crate) kernels: ExpertKernels,
}

/// Buffers kept between blocks: a decode step allocates next to nothing.
#[derive(Default)]
pub(crate) struct Scratch {
    loads: Loads,
    ready: Vec<(u32, FilledExpert)>,
}

impl Drive {
    pub(crate) fn new(
        streaming: Option<Streaming>,
        watcher: Option<Box<dyn RoutingWatcher>>,
        figures: Arc<SharedFigures>,
    ) -> Self {
        let step = Arc::default();
        let (routed, kernels) = (RoutedBlock::default(), ExpertKernels::exact());
        Self { streaming, helper: None, watcher, routed, figures, step, kernels }
    }

    /// The CPU computes experts in this way; as the bare engine does otherwise.
    pub(crate) fn with_kernels(mut self, kernels: ExpertKernels) -> Self {
        if let Some(streaming) = &mut self.streaming {
            streaming.kernels = kernels.clone();
        }
        Self { kernels, ..self }
    }

    /// Which blocks of a context of `model` come here: all when somebody watches or shares them or
    /// they are streamed; else those that are computed faster than llama.cpp would, and those it
    /// cannot compute.
    pub(crate) fn claims(&self, spec: &ModelSpec, model: &Model) -> Claims {
        if self.streaming.is_some() || self.helper.is_some() || self.watcher.is_some() {
            return Claims::all();
        }
        let from_tokens = self.kernels.from_tokens(spec.experts, spec.used);
        let from = |layer: usize| if model.is_apart(layer as u32) { 1 } else { from_tokens };
        Claims::from_tokens((0..spec.layers.len()).map(from))
    }

    /// The phase of batches comes through `step`.
    pub(crate) fn with_step(mut self, step: Arc<CurrentStep>) -> Self {
        if let Some(streaming) = &mut self.streaming {
            streaming.step = Arc::clone(&step);
        }
        Self { step, ..self }
    }

    /// Who decides where experts are streamed.
    pub(crate) fn setup(&self) -> Option<SchedulerSetup> {
        self.streaming.as_ref().map(|streaming| streaming.setup.clone())
    }

    pub(crate) fn with_helper(self, helper: Option<Box<dyn BlockHelper>>) -> Self {
        Self { helper, ..self }
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
        let begun = now();
        let Some(streaming) = &mut self.streaming else { return self.run_in_memory(block, cpu) };
        let outcome = streaming.run(block, cpu);
        if !matches!(outcome, Ok(ComputeOutcome::Done)) {
            streaming.abandon();
        }
        if streaming.experts.changed() {
            self.figures.note_model_changed();
        }
        if let Some(timeline) = &streaming.timeline {
            timeline.end_block();
        }
        streaming.times.block = begun.elapsed();
        let after = streaming.figures();
        let before = std::mem::replace(&mut streaming.counted, after);
        let added = added(streaming.times, &before, &after, block.output_rows() as u64);
        let added = added.plus(&work_of(cpu));
        self.figures.add(self.step.phase(), &added, Some(after));
        outcome.map_err(|reason| BlockError { layer: block.layer(), reason })
    }
}

impl Drive {
    /// llama.cpp holds all bytes: a helper takes the block, or the CPU computes it whole.
    fn run_in_memory(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let begun = now();
        let helped = self
            .helper
            .as_mut()
            .map(|helper| helper.run(self.step.phase(), block, cpu, &self.kernels))
            .transpose();
        let helped =
            helped.map_err(|reason| BlockError { layer: block.layer(), reason })?.flatten();
        let outcome = match helped {
            Some(outcome) => outcome,
            None => {
                let layer = block.layer();
                let failed = |error: SubsetError| BlockError { layer, reason: error.to_string() };
                let way = way_of(&self.kernels, block);
                cpu.compute(block, way).map_err(failed)?
            }
        };
        let took = begun.elapsed().as_secs_f64();
        let added = PhaseRecord {
            blocks: 1,
            blocks_s: took,
            compute_s: took,
            expert_tokens: block.output_rows() as u64,
            ..work_of(cpu)
        };
        self.figures.add(self.step.phase(), &added, None);
        Ok(outcome)
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

/// How a block is computed, in ggml's words. By its tokens and not by the rows that are ready, which
/// are a matter of time: a run repeated computes the same.
pub(crate) fn way_of(kernels: &ExpertKernels, block: &ExpertBlock<'_>) -> Way {
    let from = kernels.from_tokens(block.experts() as u32, block.slots() as u32);
    match block.tokens() >= from as usize || block.is_apart() {
        true => Way::Blocks { block_rows: kernels.block_rows },
        false => Way::Whole,
    }
}

impl Streaming {
    fn run(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, String> {
        self.times = BlockTimes::default();
        if let Some(timeline) = &self.timeline {
            timeline.begin_block(block.layer() as u16);
        }
        self.take_landed()?;
        self.resize();
        self.on_routed(block, cpu);
        loop {
            let outcome = self.carry_out(block, cpu)?;
            let done = self.scheduler.layer_is_done() && self.scratch.ready.is_empty();
            if outcome != ComputeOutcome::Done || done {
                return Ok(outcome);
            }
            let begun = now();
            let landed = self.experts.wait().ok_or("the scheduler waits for nothing")?;
            self.times.stall += begun.elapsed();
            self.on_landed(landed)?;
            self.take_landed()?;
        }
    }

    /// Gives memory back, or takes it again, as the machine's memory allows (M3).
    fn resize(&mut self) {
        let now = self.now();
        let Some(slots) = self.pressure.look(now) else { return };
        self.slots_least = self.slots_least.min(slots);
        for (key, _) in self.scheduler.set_cache_slots(0, slots) {
            self.experts.release(key);
        }
        self.experts.set_usable(slots + self.staging_slots);
    }

    /// Reports every load that has ended already.
    fn take_landed(&mut self) -> Result<(), String> {
        while let Some(landed) = self.experts.poll() {
            self.on_landed(landed)?;
        }
        Ok(())
    }

    fn on_routed(&mut self, block: &ExpertBlock<'_>, cpu: &mut CpuUnit) {
        self.scratch.loads.count(block);
        let phase = self.step.phase();
        if let Some(predictor) = &mut self.predictor {
            predictor.look(phase, block, self.scratch.loads.experts(), cpu);
        }
        let now = self.now();
        let (scores, predictions): (&[f32], &[Prediction]) = match &self.predictor {
            Some(predictor) => (predictor.scores(), predictor.predictions()),
            None => (&[], &[]),
        };
        let routed = motley_sched::cache::Routed {
            layer: block.layer() as u16,
            tokens: block.tokens() as u32,
            experts: self.scratch.loads.experts(),
            loads: self.scratch.loads.tokens(),
            weights: &[],
            scores,
        };
        self.scheduler.on_routed(now, &Routing { routed, phase, predictions });
    }

    /// Does everything there is to do now: loads are started, what is ready is computed.
    fn carry_out(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, String> {
        loop {
            match self.scheduler.poll_action(self.now()) {
                None if !self.overlap && self.experts.under_way() => {
                    return Ok(ComputeOutcome::Done);
                }
                None => return self.compute_ready(block, cpu),
                Some(Action::Load { key, purpose, .. }) => {
                    let outcome = self.start_load(key, purpose, block, cpu)?;
                    if outcome != ComputeOutcome::Done {
                        return Ok(outcome);
                    }
                }
                Some(Action::Compute { key, .. }) => {
                    let filled = self.experts.get(key).ok_or("an expert without its bytes")?;
                    self.scratch.ready.push((u32::from(key.expert), filled.clone()));
                    self.scheduler.on_computed(self.now(), key, Unit::Tier(0));
                }
                Some(Action::Release { key, .. }) => self.experts.release(key),
                Some(Action::Exchange { .. }) => {}
            }
        }
    }

    /// Starts a load; slots still held by experts about to be computed are freed first.
    fn start_load(
        &mut self,
        key: ExpertKey,
        purpose: Purpose,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, String> {
        if let Some(timeline) = &self.timeline {
            timeline.asked(key, purpose);
        }
        let priority = match purpose {
            Purpose::Demand => Priority::Demand,
            Purpose::Guess => Priority::Prefetch,
        };
        if self.experts.load(key, priority) {
            return Ok(ComputeOutcome::Done);
        }
        let outcome = self.compute_ready(block, cpu)?;
        if outcome == ComputeOutcome::Done && !self.experts.load(key, priority) {
            return Err(format!("no slot for expert {}", key.expert));
        }
        Ok(outcome)
    }

    fn compute_ready(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, String> {
        if self.scratch.ready.is_empty() {
            return Ok(ComputeOutcome::Done);
        }
        let ready: Vec<_> =
            self.scratch.ready.iter().map(|(expert, filled)| (*expert, filled)).collect();
        let begun = now();
        let since = self.timeline.as_ref().map(|timeline| timeline.now());
        let way = way_of(&self.kernels, block);
        let outcome = cpu.compute_with(block, &ready, way).map_err(|error| error.to_string());
        self.times.compute += begun.elapsed();
        if let (Some(timeline), Some(since)) = (&self.timeline, since) {
            let layer = block.layer() as u16;
            let with_tokens = |(expert, _): &(u32, &FilledExpert)| {
                (ExpertKey::new(layer, *expert as u16), self.scratch.loads.of(*expert as u16))
            };
            timeline.computed(&ready.iter().map(with_tokens).collect::<Vec<_>>(), since);
        }
        self.scratch.ready.clear();
        outcome
    }

    fn on_landed(&mut self, landed: Landed) -> Result<(), String> {
        let now = self.now();
        if let Some(timeline) = &self.timeline {
            timeline.landed(landed.key);
        }
        let lost = self.scheduler.on_loaded(now, 0, landed.key, landed.error.is_none());
        lost.map_err(|lost| landed.error.unwrap_or_else(|| lost.to_string()))
    }

    /// Gives the block up. Loads under way land later, as guesses would.
    fn abandon(&mut self) {
        self.scratch.ready.clear();
        self.scheduler.abandon_layer();
    }

    fn figures(&self) -> StreamFigures {
        StreamFigures {
            counts: self.scheduler.counts(),
            disk: self.experts.counters(),
            predicted: self.predictor.as_ref().map(Predictor::accuracy),
            slots: self.scheduler.cache(0).usable(),
            slots_least: self.slots_least,
            slots_most: self.scheduler.cache(0).capacity().total(),
            arena_bytes: self.experts.occupied_bytes(),
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }
}
