//! The worker of continuous batching: takes requests, carries out the planner's steps, samples.
//! A failed step ends the requests in it and nothing else. It waits for nothing and starts no
//! thread; whoever calls it (`supervise`) does.

use super::compute::{Compute, ComputeError};
use super::shared::{BatchFigures, BatchOptions, Incoming, Shared};
use super::stream::{Event, Next, Reason, Stream};
use crate::chunk::chunk_for;
use motley_ggml::BatchToken;
use motley_sched::Phase;
use motley_sched::batch::{Change, Planner, Prompt, RequestId, Segment, Sharing, StepPart};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(super) struct Worker<C> {
    compute: C,
    rows: Vec<BatchToken>,
    planner: Planner,
    /// In order, so that what happens does not depend on a hash's seed.
    streams: BTreeMap<RequestId, Stream>,
    options: BatchOptions,
    shared: Arc<Shared>,
    figures: BatchFigures,
}

impl<C: Compute> Worker<C> {
    pub(super) fn new(
        mut compute: C,
        options: &BatchOptions,
        sharing: Sharing,
        shared: Arc<Shared>,
    ) -> Self {
        let mut planner = Planner::new(options.limits(sharing));
        if let Some((limits, found)) = compute.on_disk() {
            planner.keep_on_disk(limits, &found);
        }
        Self {
            compute,
            rows: Vec::with_capacity(options.batch_tokens() as usize),
            planner,
            streams: BTreeMap::new(),
            options: *options,
            shared,
            figures: BatchFigures::default(),
        }
    }

    pub(super) fn longest(&self) -> u32 {
        self.planner.longest()
    }

    /// Whether no request is here.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// One step for those that are here.
    pub(super) fn turn(&mut self) {
        self.drop_gone();
        self.drop_late();
        self.step();
        self.publish();
    }

    /// Writes one segment of a prompt that is kept, which nobody waits for; `false` when there is
    /// none.
    pub(super) fn tidy(&mut self) -> bool {
        let has = self.planner.has_to_store();
        if has {
            let step = self.planner.plan();
            self.carry_out(&step.changes);
            self.publish();
        }
        has
    }

    /// Everyone gets `reason` and is gone; the planner is left as it is.
    pub(super) fn give_up(&mut self, reason: &str) {
        for (_, stream) in std::mem::take(&mut self.streams) {
            if !stream.begun {
                self.shared.waiting.fetch_sub(1, Relaxed);
            }
            self.figures.failed += 1;
            stream.send(Event::Failed(reason.to_owned()));
        }
        self.publish();
    }

    pub(super) fn take(&mut self, incoming: Incoming) {
        let Incoming { id, ask, events, came } = incoming;
        let chunk_tokens = chunk_for(ask.prompt.len(), self.options.step_tokens);
        let boundaries = self.planner.boundaries(&ask.prompt, |token| self.compute.is_end(token));
        let tokens = ask.prompt.to_vec();
        let prompt = Prompt { client: ask.client, tokens, chunk_tokens, boundaries };
        let stream = Stream::new(ask, self.compute.vocab_size(), events, came);
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

    /// Ends the requests whose time is over.
    fn drop_late(&mut self) {
        let now = self.shared.clock.now();
        let is_late = |stream: &Stream| stream.ends_at.is_some_and(|end| end <= now);
        let late = self.streams.iter().filter(|(_, stream)| is_late(stream));
        for id in late.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.figures.late += 1;
            if let Some(stream) = self.remove(id, self.options.share_prefixes) {
                stream.end_late(now);
            }
        }
    }

    fn step(&mut self) {
        let mut step = self.planner.plan();
        if !self.carry_out(&step.changes) {
            return;
        }
        step.parts.retain(|part| self.streams.contains_key(&part.request));
        let now = self.shared.clock.now();
        for part in &step.parts {
            self.begin(part, now);
        }
        let together = if self.options.exact { 1 } else { step.parts.len().max(1) };
        let mut took = Duration::ZERO;
        for parts in step.parts.chunks(together) {
            if !self.streams.contains_key(&parts[0].request) {
                // One before it took the whole cache along.
                continue;
            }
            let (begun, stalled) = (self.shared.clock.now(), self.compute.figures().stalled);
            let result = self.compute(parts);
            let time = self.shared.clock.now().saturating_sub(begun);
            self.count(parts, time);
            let stalled = self.compute.figures().stalled.saturating_sub(stalled);
            self.note_disk(parts, stalled.min(time));
            match result {
                Ok(()) => self.sample(parts),
                Err(error) => self.fail(parts, &error),
            }
            // Who waits for the next step waits for the choice of tokens too.
            took += self.shared.clock.now().saturating_sub(begun);
        }
        self.planner.on_computed(took);
        if self.streams.is_empty() {
            // What the last ones held is freed before the thread sleeps.
            let freed = self.planner.plan();
            self.carry_out(&freed.changes);
        }
    }

    /// Makes the planner's changes of the cache, in order. A sequence that cannot be cut is
    /// dropped whole, and its request fails; `false` when even that was refused: then cache and
    /// ledger tell different stories, so both begin anew, and every request in them fails.
    fn carry_out(&mut self, changes: &[Change]) -> bool {
        for change in changes {
            if self.change(change) {
                continue;
            }
            self.figures.failed_cuts += 1;
            let reason = format!("the cache could not be cut ({change:?})");
            self.note_failure(&reason, false);
            if let Change::Cut { sequence, .. } | Change::Restore { sequence, .. } = *change
                && self.compute.truncate(i32::from(sequence), 0)
            {
                let holder = self.planner.request_of(sequence);
                holder.into_iter().for_each(|id| self.fail_one(id, reason.clone()));
                continue;
            }
            self.begin_anew(&reason);
            return false;
        }
        true
    }

    /// Cache and ledger are emptied, and every request that was in them fails.
    fn begin_anew(&mut self, reason: &str) {
        self.compute.clear();
        self.planner.reset().into_iter().for_each(|id| self.fail_one(id, reason.to_owned()));
    }

    fn change(&mut self, change: &Change) -> bool {
        match *change {
            Change::Drop { sequence } => self.compute.truncate(i32::from(sequence), 0),
            Change::Copy { from, to, tokens } => {
                self.compute.copy_prefix(i32::from(from), i32::from(to), tokens as i32);
                true
            }
            Change::Cut { sequence, tokens } => {
                self.compute.truncate(i32::from(sequence), tokens as i32)
            }
            Change::Save { sequence, state } => {
                if !self.compute.save(i32::from(sequence), state) {
                    self.planner.on_unsaved(state);
                }
                true
            }
            Change::Restore { sequence, state } => self.compute.restore(i32::from(sequence), state),
            Change::Discard { state } => {
                self.compute.discard(state);
                true
            }
            Change::Store { sequence, segment } => {
                match self.compute.store(i32::from(sequence), &segment) {
                    Some(bytes) => self.planner.on_stored(Segment { bytes, ..segment }),
                    None => self.planner.on_unstored(segment.key),
                }
                true
            }
            Change::Load { sequence, segment } => {
                let begun = self.shared.clock.now();
                let loaded = self.compute.load(i32::from(sequence), &segment);
                let took = self.shared.clock.now().saturating_sub(begun);
                let request = self.planner.request_of(sequence);
                if let Some(stream) = request.and_then(|id| self.streams.get_mut(&id)) {
                    stream.stages.begin(begun);
                    stream.stages.wait_for_disk(took);
                }
                if loaded {
                    self.planner.on_loaded(&segment, took);
                } else {
                    self.planner.on_unloaded(sequence, &segment);
                }
                true
            }
            Change::Erase { segment } => {
                self.compute.erase(segment);
                true
            }
        }
    }

    fn begin(&mut self, part: &StepPart, now: Duration) {
        let Some(stream) = self.streams.get_mut(&part.request) else { return };
        stream.stages.begin(now);
        if !stream.begun {
            stream.begun = true;
            stream.reused(part.first as usize);
            self.shared.waiting.fetch_sub(1, Relaxed);
        }
    }

    fn compute(&mut self, parts: &[StepPart]) -> Result<(), ComputeError> {
        self.rows.clear();
        for part in parts {
            let tokens = self.planner.tokens(part.sequence);
            self.rows.extend((part.first..part.first + part.tokens).map(|at| BatchToken {
                token: tokens[at as usize],
                position: at as i32,
                sequence: i32::from(part.sequence),
                logits: part.samples && at + 1 == part.first + part.tokens,
            }));
        }
        self.compute.decode(&self.rows, phase_of(parts))
    }

    fn sample(&mut self, parts: &[StepPart]) {
        self.shared.health.succeeded();
        let mut next = 0;
        for part in parts {
            next += part.tokens as usize;
            if !part.samples {
                continue;
            }
            let Some(stream) = self.streams.get_mut(&part.request) else { continue };
            let came = match stream.embeds {
                true => stream.embed(&self.compute, part, self.options.embedding),
                false => stream.sample(&self.compute, next - 1),
            };
            self.figures.answer_tokens += u64::from(!stream.embeds);
            stream.stages.say(self.shared.clock.now());
            match came {
                Next::Token(token) => {
                    if !self.planner.on_token(part.request, token) {
                        self.end(part.request, Reason::Length);
                    }
                }
                Next::End(reason) => self.end(part.request, reason),
                Next::Failed(bad) => self.fail_one(part.request, bad.to_string()),
                Next::Stuck(reason) => self.fail_one(part.request, reason),
                Next::Silent => {
                    self.fail_one(part.request, "the context has no output".to_owned());
                }
            }
        }
    }

    fn end(&mut self, id: RequestId, reason: Reason) {
        self.figures.answered += 1;
        if let Some(stream) = self.remove(id, self.options.share_prefixes) {
            stream.end(reason, self.shared.clock.now());
        }
    }

    fn fail(&mut self, parts: &[StepPart], error: &ComputeError) {
        self.note_failure(&error.reason, error.model_changed);
        for part in parts {
            self.fail_one(part.request, error.reason.clone());
        }
        if error.cache_lost {
            self.begin_anew(&error.reason);
        }
    }

    fn note_failure(&self, reason: &str, for_good: bool) {
        tracing::warn!(reason, "a step failed");
        self.shared.health.failed(self.shared.clock.now(), reason.to_owned(), for_good);
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

    /// Everyone in a step waits for the disk as long as it does.
    fn note_disk(&mut self, parts: &[StepPart], time: Duration) {
        for part in parts {
            if let Some(stream) = self.streams.get_mut(&part.request) {
                stream.stages.wait_for_disk(time);
            }
        }
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
        let counted = self.compute.figures();
        self.figures.seam = counted.seam;
        self.figures.stream = counted.stream;
        *self.shared.figures.lock().expect("no panic holds this lock") = self.figures;
    }
}

/// Decode, when no row of a prompt is among them.
fn phase_of(parts: &[StepPart]) -> Phase {
    if parts.iter().all(|part| part.decodes) { Phase::Decode } else { Phase::Prefill }
}
