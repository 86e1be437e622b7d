//! The thread that owns the context: takes requests, carries out the planner's steps,
//! samples. A failed step ends the requests in it and nothing else.

use super::shared::{BatchFigures, BatchOptions, Incoming, Shared};
use super::stream::{Event, Next, Reason, Stream};
use crate::blocks::figures::SharedFigures;
use crate::blocks::resident::ResidentExperts;
use crate::blocks::routing::RoutingWatcher;
use crate::blocks::step::CurrentStep;
use crate::chunk::chunk_for;
use crate::clock::now;
use crate::{Engine, SessionError};
use motley_ggml::{Batch, BatchToken, Context, ContextOptions, DecodeError, PoolChoice};
use motley_plan::budget::SessionShape;
use motley_sched::Phase;
use motley_sched::batch::{BatchLimits, Change, Planner, Prompt, RequestId, Sharing, StepPart};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;

pub(super) struct Worker {
    context: Context,
    batch: Batch,
    planner: Planner,
    streams: HashMap<RequestId, Stream>,
    options: BatchOptions,
    shared: Arc<Shared>,
    figures: BatchFigures,
    blocks: Arc<SharedFigures>,
    /// What the batch under way is, for its blocks.
    step: Arc<CurrentStep>,
}

impl Worker {
    pub(super) fn new(
        engine: &Engine,
        options: &BatchOptions,
        watcher: Option<Box<dyn RoutingWatcher>>,
        shared: Arc<Shared>,
    ) -> Result<Self, SessionError> {
        let step_tokens = options.step_tokens.max(u32::from(options.sequences));
        let sharing = sharing(options, engine.keeps_every_position());
        let shape = ContextOptions {
            context_tokens: options.context_tokens,
            batch_tokens: step_tokens.min(options.context_tokens),
            sequences: u32::from(options.sequences),
            unified: matches!(sharing, Sharing::Prefixes | Sharing::Cells),
            precise_attention: false,
        };
        let counted = SessionShape {
            context_tokens: shape.context_tokens,
            chunk_tokens: shape.batch_tokens,
            output_tokens: shape.sequences,
        };
        let step = Arc::<CurrentStep>::default();
        let (drive, blocks) = engine.drive(counted, watcher, Arc::clone(&step))?;
        let context = engine.context(&shape, drive)?;
        let planner = Planner::new(BatchLimits {
            sequences: options.sequences,
            cells: options.context_tokens,
            step_tokens: shape.batch_tokens,
            prefill_beside_decode: options.prefill_beside_decode,
            waiting: usize::MAX,
            sharing,
        });
        Ok(Self {
            batch: Batch::with_capacity(step_tokens as usize),
            context,
            planner,
            streams: HashMap::new(),
            options: *options,
            shared,
            figures: BatchFigures::default(),
            blocks,
            step,
        })
    }

    pub(super) fn longest(&self) -> u32 {
        self.planner.longest()
    }

    /// Which experts are in memory; `None` when all are.
    pub(super) fn resident(&self) -> Option<Arc<ResidentExperts>> {
        self.blocks.resident()
    }

    /// Works until no more requests can come and all are answered.
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<Incoming>) {
        loop {
            if self.streams.is_empty() {
                let Some(incoming) = requests.blocking_recv() else { return };
                self.take(incoming);
            }
            while let Ok(incoming) = requests.try_recv() {
                self.take(incoming);
            }
            self.drop_gone();
            self.step();
            self.publish();
        }
    }

    fn take(&mut self, incoming: Incoming) {
        let Incoming { id, ask, events } = incoming;
        let chunk_tokens = chunk_for(ask.prompt.len(), self.options.step_tokens);
        let prompt = Prompt { tokens: ask.prompt.clone(), chunk_tokens };
        let stream = Stream::new(ask, self.context.model().vocab_size(), events);
        match self.planner.submit(id, prompt) {
            Ok(()) => drop(self.streams.insert(id, stream)),
            Err(refused) => {
                self.shared.waiting.fetch_sub(1, Relaxed);
                stream.send(Event::Failed(refused.to_string()));
            }
        }
    }

    /// Ends the requests nobody listens to.
    fn drop_gone(&mut self) {
        let gone = self.streams.iter().filter(|(_, stream)| stream.events.is_closed());
        for id in gone.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.figures.cancelled += 1;
            self.remove(id, false);
        }
    }

    fn step(&mut self) {
        let step = self.planner.plan();
        step.changes.iter().for_each(|change| self.change(change));
        for part in &step.parts {
            self.begin(part);
        }
        let together = if self.options.exact { 1 } else { step.parts.len().max(1) };
        for parts in step.parts.chunks(together) {
            let begun = now();
            let result = self.compute(parts);
            self.count(parts, begun.elapsed());
            match result {
                Ok(()) => self.sample(parts),
                Err(error) => self.fail(parts, &error),
            }
        }
        if self.streams.is_empty() {
            // What the last ones held is freed before the thread sleeps.
            let freed = self.planner.plan();
            freed.changes.iter().for_each(|change| self.change(change));
        }
    }

    fn change(&mut self, change: &Change) {
        match *change {
            Change::Drop { sequence } => drop(self.context.truncate(i32::from(sequence), 0)),
            Change::Copy { from, to, tokens } => {
                self.context.copy_prefix(i32::from(from), i32::from(to), tokens as i32);
            }
            Change::Cut { sequence, tokens } => {
                let _ = self.context.truncate(i32::from(sequence), tokens as i32);
            }
        }
    }

    fn begin(&mut self, part: &StepPart) {
        let Some(stream) = self.streams.get_mut(&part.request) else { return };
        if !stream.begun {
            stream.begun = true;
            stream.reused(part.first as usize);
            self.shared.waiting.fetch_sub(1, Relaxed);
        }
    }

    fn compute(&mut self, parts: &[StepPart]) -> Result<(), DecodeError> {
        self.batch.clear();
        for part in parts {
            let tokens = self.planner.tokens(part.sequence);
            for at in part.first..part.first + part.tokens {
                self.batch.push(BatchToken {
                    token: tokens[at as usize],
                    position: at as i32,
                    sequence: i32::from(part.sequence),
                    logits: part.samples && at + 1 == part.first + part.tokens,
                });
            }
        }
        let phase = phase_of(parts);
        self.step.set(phase);
        self.context.decode(&self.batch, PoolChoice::of(phase == Phase::Decode))
    }

    fn sample(&mut self, parts: &[StepPart]) {
        let mut next = 0;
        for part in parts {
            next += part.tokens as usize;
            if !part.samples {
                continue;
            }
            let Some(stream) = self.streams.get_mut(&part.request) else { continue };
            self.figures.answer_tokens += 1;
            match stream.sample(&self.context, next - 1) {
                Next::Token(token) => {
                    if !self.planner.on_token(part.request, token) {
                        self.end(part.request, Reason::Length);
                    }
                }
                Next::End(reason) => self.end(part.request, reason),
                Next::Stuck => {
                    let words = "no token fits the grammar".to_owned();
                    self.fail_one(part.request, words);
                }
            }
        }
    }

    fn end(&mut self, id: RequestId, reason: Reason) {
        self.figures.answered += 1;
        if let Some(stream) = self.remove(id, true) {
            stream.end(reason);
        }
    }

    fn fail(&mut self, parts: &[StepPart], error: &DecodeError) {
        for part in parts {
            self.fail_one(part.request, error.to_string());
        }
    }

    fn fail_one(&mut self, id: RequestId, reason: String) {
        self.figures.failed += 1;
        if let Some(stream) = self.remove(id, false) {
            stream.send(Event::Failed(reason));
        }
    }

    fn remove(&mut self, id: RequestId, keep: bool) -> Option<Stream> {
        self.planner.finish(id, keep);
        let stream = self.streams.remove(&id)?;
        if !stream.begun {
            self.shared.waiting.fetch_sub(1, Relaxed);
        }
        Some(stream)
    }

    fn count(&mut self, parts: &[StepPart], time: Duration) {
        let prompt = parts.iter().filter(|part| !part.decodes).map(|part| u64::from(part.tokens));
        self.figures.prompt_tokens += prompt.sum::<u64>();
        if phase_of(parts) == Phase::Decode {
            self.figures.decode_steps += 1;
            self.figures.decode_busy += time;
        }
        self.figures.steps += 1;
        self.figures.busy += time;
        self.figures.longest_step = self.figures.longest_step.max(time);
    }

    fn publish(&mut self) {
        self.figures.planner = self.planner.figures();
        self.figures.seam = self.context.seam_counts();
        self.figures.stream = self.blocks.get().stream;
        *self.shared.figures.lock().expect("no panic holds this lock") = self.figures;
    }
}

/// Decode, when no row of a prompt is among them.
fn phase_of(parts: &[StepPart]) -> Phase {
    if parts.iter().all(|part| part.decodes) { Phase::Decode } else { Phase::Prefill }
}

/// How streams share the cache.
fn sharing(options: &BatchOptions, keeps_every_position: bool) -> Sharing {
    match (options.exact, keeps_every_position, options.own_caches) {
        (true, _, _) => Sharing::Nothing,
        (false, false, _) => Sharing::Cells,
        (false, true, true) => Sharing::Parts,
        (false, true, false) => Sharing::Prefixes,
    }
}
