//! `Session`: one timeline on an engine. Prefill in chunks (N7), decode, cancel; `generate`: whole
//! answers; `draft`: a small model that guesses, a `follower`. Reads the clock for its timings only.

mod draft;
mod error;
mod follower;
mod generate;

pub use error::{DraftRefused, SessionError};
pub use generate::{Finish, Generation};

use crate::blocks::drive::Drive;
use crate::blocks::figures::{SharedFigures, StreamFigures};
use crate::blocks::step::CurrentStep;
use crate::chunk::{Logits, chunk_for};
use crate::clock::now;
use crate::energy::EnergyWatch;
use crate::text::sampling;
use crate::threads::contention::ContentionWatch;
use crate::threads::pools;
use follower::Follower;
use motley_cost::Nanos;
use motley_ggml::{
    Batch, BatchToken, Context, ContextOptions, Model, PoolChoice, Pools, SeamCounts,
};
use motley_model::{KvType, ModelSpec};
use motley_plan::budget::SessionShape;
use motley_plan::cores::ThreadSets;
use motley_plan::decide::asked::DEFAULT_CONTEXT_TOKENS;
use motley_sched::speculate::{MOST_GUESSES, Speculation};
use motley_sched::{Phase, SchedulerSetup};
use motley_trace::{PhaseRecord, SpeculationRecord};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The one sequence of a session.
const SEQUENCE: i32 = 0;

/// Shape of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// KV cache length in tokens.
    pub context_tokens: u32,
    /// What it is kept in.
    pub kv: KvType,
    /// Whether layers that look back at a window keep no more than it.
    pub windows: bool,
    /// Largest prefill chunk.
    pub chunk_tokens: u32,
    /// f32 KV cache and plain attention, for comparing with references.
    pub precise_attention: bool,
    /// Whether the logits of every token of a prompt will be asked for, as [`Session::score`]
    /// does: memory is set aside for them.
    pub scores: bool,
    /// Whether answers are guessed ahead: memory is set aside for the logits of several tokens.
    pub speculate: Speculate,
}

/// Whether tokens are guessed ahead and computed several at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speculate {
    /// One by one.
    #[default]
    Off,
    /// As many as pay. None where a model's memory cannot take tokens back.
    Auto,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            context_tokens: DEFAULT_CONTEXT_TOKENS,
            kv: KvType::F16,
            windows: false,
            chunk_tokens: motley_plan::CHUNKS[0],
            precise_attention: false,
            scores: false,
            speculate: Speculate::Off,
        }
    }
}

impl SessionOptions {
    /// What a budget counts of it.
    pub fn shape(&self) -> SessionShape {
        SessionShape {
            context_tokens: self.context_tokens,
            kv: self.kv,
            windows: self.windows,
            chunk_tokens: self.chunk_tokens,
            output_tokens: match self.speculate {
                _ if self.scores => self.chunk_tokens,
                Speculate::Off => 1,
                Speculate::Auto => 1 + MOST_GUESSES as u32,
            },
            states: 1,
        }
    }
}

/// Ends a session's running work from another thread.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// The current or next step ends with an error that [is one](SessionError::is_cancelled).
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Takes back a cancellation that came when nothing was under way.
    pub fn reset(&self) {
        self.0.store(false, Relaxed);
    }
}

/// Counts and times of a session so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionStats {
    /// Prompt tokens computed.
    pub prefill_tokens: u64,
    /// Time spent on them.
    pub prefill_time: Duration,
    pub decode_tokens: u64,
    /// Time spent on them.
    pub decode_time: Duration,
    /// Of both times: a draft model's.
    pub prefill_draft_time: Duration,
    pub decode_draft_time: Duration,
    /// Time spent choosing tokens, in neither of the others.
    pub sampling_time: Duration,
    /// How often decode went on with fewer or more threads, trials included.
    pub thread_changes: u64,
    /// What became of guesses, where the session may make some.
    pub speculation: Option<SpeculationRecord>,
    /// What went through the seam.
    pub seam: SeamCounts,
    /// What streaming did, when experts are read on demand.
    pub stream: Option<StreamFigures>,
    /// Where the time of prompts went.
    pub prefill: PhaseRecord,
    /// Where the time of decoding went.
    pub decode: PhaseRecord,
}

/// One timeline: a KV cache and the tokens in it.
pub struct Session {
    context: Context,
    batch: Batch,
    position: u32,
    /// Row of the batch that has the logits after the last token.
    last_row: Option<usize>,
    options: SessionOptions,
    /// `None` computes tokens one by one.
    speculation: Option<Speculation>,
    /// Guesses where the text does not.
    draft: Option<Follower<Self>>,
    stats: SessionStats,
    figures: Arc<SharedFigures>,
    step: Arc<CurrentStep>,
    contention: Option<ContentionWatch>,
    setup: Option<SchedulerSetup>,
    /// What its computing draws; watches nothing until it is replaced by one that does.
    pub energy: EnergyWatch,
}

/// What an engine gives a session.
pub(crate) struct SessionParts {
    pub(crate) pools: Pools,
    pub(crate) drive: Drive,
    pub(crate) figures: Arc<SharedFigures>,
    pub(crate) step: Arc<CurrentStep>,
    /// `None` keeps the number of threads.
    pub(crate) contention: Option<ContentionWatch>,
}

impl Session {
    pub(crate) fn new(
        (model, spec): (Arc<Model>, &ModelSpec),
        options: &SessionOptions,
        parts: SessionParts,
    ) -> Result<Self, SessionError> {
        let shape = ContextOptions {
            context_tokens: options.context_tokens,
            kv: options.kv,
            windows: options.windows && !options.precise_attention,
            batch_tokens: options.chunk_tokens.min(options.context_tokens),
            sequences: 1,
            unified: false,
            precise_attention: options.precise_attention,
            pooling: None,
        };
        let setup = parts.drive.setup();
        let claims = parts.drive.claims(spec, &model);
        let context = Context::new(model, &shape, parts.pools, (Box::new(parts.drive), claims))?;
        let streams = setup.is_some();
        let session = Self {
            context,
            batch: Batch::with_capacity(shape.batch_tokens as usize),
            position: 0,
            last_row: None,
            options: *options,
            speculation: None,
            draft: None,
            stats: SessionStats::default(),
            figures: parts.figures,
            step: parts.step,
            contention: parts.contention,
            setup,
            energy: EnergyWatch::default(),
        };
        Ok(match options.speculate {
            Speculate::Off => session,
            Speculate::Auto => session.speculating(streams),
        })
    }

    /// Computes `tokens` after what is there already, in chunks; afterwards
    /// [`Session::logits`] belongs to the last of them.
    pub fn prefill(&mut self, tokens: &[i32]) -> Result<(), SessionError> {
        self.check_room(tokens.len())?;
        let start = now();
        let chunk = chunk_for(tokens.len(), self.options.chunk_tokens) as usize;
        let chunks = tokens.chunks(chunk);
        let last = chunks.len().saturating_sub(1);
        for (index, chunk) in chunks.enumerate() {
            let wanted = if index == last { Logits::Last } else { Logits::None };
            self.compute(Phase::Prefill, chunk, wanted)?;
        }
        let followed = self.draft_follows();
        self.stats.prefill_tokens += tokens.len() as u64;
        self.stats.prefill_time += start.elapsed();
        followed
    }

    /// As [`Session::prefill`], with the logits of every token shown to `on_logits`
    /// (index in `tokens`, `[vocab]`). Slower: the output layer runs for all.
    pub fn score(
        &mut self,
        tokens: &[i32],
        on_logits: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), SessionError> {
        self.check_room(tokens.len())?;
        let chunk = chunk_for(tokens.len(), self.options.chunk_tokens) as usize;
        for (index, part) in tokens.chunks(chunk).enumerate() {
            let start = now();
            self.compute(Phase::Prefill, part, Logits::All)?;
            self.stats.prefill_tokens += part.len() as u64;
            self.stats.prefill_time += start.elapsed();
            for at in 0..part.len() {
                on_logits(index * chunk + at, self.context.logits(at).unwrap_or(&[]));
            }
        }
        Ok(())
    }

    /// Computes one token.
    pub fn decode(&mut self, token: i32) -> Result<(), SessionError> {
        self.decode_rows(&[token]).map(drop)
    }

    /// Computes a token and guesses after it, with logits of all; what that took. Only the token
    /// counts as decoded. Cores are yielded by what tokens take that are computed alone.
    fn decode_rows(&mut self, tokens: &[i32]) -> Result<Duration, SessionError> {
        self.check_room(tokens.len())?;
        let stalled_s = self.figures.get().decode.stall_s;
        let start = now();
        self.compute(Phase::Decode, tokens, Logits::All)?;
        let took = start.elapsed();
        self.stats.decode_tokens += 1;
        self.stats.decode_time += took;
        let stalled_s = self.figures.get().decode.stall_s - stalled_s;
        if tokens.len() == 1 {
            self.yield_cores(took.saturating_sub(Duration::from_secs_f64(stalled_s.max(0.0))));
        }
        Ok(took)
    }

    /// Computes on other threads from the next token on; the KV cache stays (A5).
    pub fn set_threads(&mut self, sets: &ThreadSets) -> Result<(), SessionError> {
        let threads = sets.prefill.threads.max(sets.decode.threads);
        let pools = pools::pools(sets).ok_or(SessionError::Threads { threads })?;
        if self.contention.is_some() {
            self.contention = Some(ContentionWatch::new(pools.clone(), sets.decode.clone()));
        }
        self.set_pools(pools);
        Ok(())
    }

    /// A draft model computes on the same ones.
    fn set_pools(&mut self, pools: Pools) {
        if let Some(draft) = &mut self.draft {
            draft.set_pools(pools.clone());
        }
        self.context.set_pools(pools);
    }

    /// Keeps the number of threads from now on, whatever other programs do.
    pub fn keep_threads(&mut self) {
        self.contention = None;
    }

    /// After a token that computed for `took`.
    fn yield_cores(&mut self, took: Duration) {
        let took = Nanos(took.as_nanos() as u64);
        let watch = self.contention.as_mut();
        if let Some(pools) = watch.and_then(|watch| watch.after_step(took, 1)) {
            self.set_pools(pools);
        }
    }

    /// Logits after the last computed token, `[vocab]`; empty before the first.
    pub fn logits(&self) -> &[f32] {
        self.last_row.and_then(|row| self.context.logits(row)).unwrap_or(&[])
    }

    /// Forgets everything after the first `tokens` tokens; `false` when this
    /// model's memory cannot be cut there (recurrent state, what fell out of a window).
    pub fn truncate(&mut self, tokens: u32) -> bool {
        let cut = tokens < self.position && self.context.truncate(SEQUENCE, tokens as i32);
        if cut {
            self.position = tokens;
            self.forget_beyond(tokens);
        }
        cut || tokens == self.position
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.context.clear();
        self.position = 0;
        self.forget_beyond(0);
    }

    fn forget_beyond(&mut self, tokens: u32) {
        if let Some(speculation) = &mut self.speculation {
            speculation.truncate(tokens as usize);
        }
    }

    /// Most tokens of a pass.
    fn batch_tokens(&self) -> usize {
        self.options.chunk_tokens.min(self.options.context_tokens) as usize
    }

    /// Who decides where experts are streamed from disk; `None` where they are not.
    pub fn setup(&self) -> Option<&SchedulerSetup> {
        self.setup.as_ref()
    }

    /// The shape it was started with.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Tokens computed and kept.
    pub fn len(&self) -> u32 {
        self.position
    }

    /// Whether nothing has been computed.
    pub fn is_empty(&self) -> bool {
        self.position == 0
    }

    /// A handle that ends running work from another thread.
    pub fn cancel(&self) -> Cancel {
        Cancel(self.context.cancel_flag())
    }

    /// Counts and times so far.
    pub fn stats(&self) -> SessionStats {
        let sums = self.figures.get();
        let own = &self.stats;
        let phase = |sums: PhaseRecord, tokens, time: Duration, draft_time: Duration| PhaseRecord {
            tokens,
            time_s: time.as_secs_f64(),
            draft_s: draft_time.as_secs_f64(),
            ..sums
        };
        let prefill =
            phase(sums.prefill, own.prefill_tokens, own.prefill_time, own.prefill_draft_time);
        let decode = phase(sums.decode, own.decode_tokens, own.decode_time, own.decode_draft_time);
        SessionStats {
            seam: self.context.seam_counts(),
            stream: sums.stream,
            prefill,
            decode,
            thread_changes: self.contention.as_ref().map_or(0, ContentionWatch::changes),
            ..*own
        }
    }

    fn compute(
        &mut self,
        phase: Phase,
        tokens: &[i32],
        logits: Logits,
    ) -> Result<(), SessionError> {
        self.step.set(phase);
        self.energy.enter(phase);
        self.batch.clear();
        self.last_row = None;
        let wanted = logits.rows(tokens.len());
        for (index, &token) in tokens.iter().enumerate() {
            self.batch.push(BatchToken {
                token,
                position: self.position as i32 + index as i32,
                sequence: SEQUENCE,
                logits: wanted.contains(&index),
            });
        }
        let cancelled = self.context.cancel_flag();
        let result = self.context.decode(&self.batch, PoolChoice::of(phase == Phase::Decode));
        cancelled.store(false, Relaxed);
        let result = result.map_err(SessionError::from).and_then(|()| self.check(wanted));
        if let Err(error) = result {
            // A memory that cannot be cut (recurrent state) is emptied: never half a step in it.
            if !self.context.truncate(SEQUENCE, self.position as i32) {
                self.clear();
            }
            return Err(error);
        }
        self.position += tokens.len() as u32;
        self.last_row = tokens.len().checked_sub(1);
        if let Some(speculation) = &mut self.speculation {
            speculation.extend(tokens);
        }
        Ok(())
    }

    /// Whether the logits of these rows of the batch are numbers.
    fn check(&self, mut rows: Range<usize>) -> Result<(), SessionError> {
        rows.try_for_each(|row| {
            let token = self.position as usize + row + 1;
            let logits = self.context.logits(row).unwrap_or(&[]);
            sampling::check(logits).map_err(|source| SessionError::Logits { token, source })
        })
    }

    fn check_room(&self, more: usize) -> Result<(), SessionError> {
        let tokens = self.position as usize + more;
        if tokens <= self.options.context_tokens as usize {
            return Ok(());
        }
        Err(SessionError::TooLong { tokens, context_tokens: self.options.context_tokens })
    }
}
