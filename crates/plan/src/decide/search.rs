//! The best attempt for one kind of keys and values: chunks (N7), budgets and lengths of the context,
//! each compared by what it is expected to come to.

use motley_model::KvType;

use super::asked::{ANSWER_TOKENS, Asked, CHUNKS, Goal};
use super::attempt::{Attempt, Size};
use super::context;
use super::devices::Candidate;
use super::error::DecideError;
use super::facts::Facts;
use crate::budget::SessionShape;

/// How much faster another chunk than the default one must be.
const CHUNK_GAIN: f64 = 1.03;
/// How much slower decode may be for the sake of a longer context.
const CONTEXT_COST: f64 = 1.05;
/// Under the goal `memory`, speed that is kept of what all memory would give.
const MEMORY_GOAL_SPEED: f64 = 0.9;
/// Budgets compared under the goal `memory`.
const MEMORY_STEPS: u64 = 64;

/// Compares attempts.
pub(super) struct Search<'a, 'f> {
    facts: &'a Facts<'f>,
    asked: &'a Asked,
    candidates: &'a [Candidate<'f>],
    /// What keys and values are kept in.
    kv: KvType,
}

impl<'a, 'f: 'a> Search<'a, 'f> {
    pub(super) fn new(
        facts: &'a Facts<'f>,
        asked: &'a Asked,
        candidates: &'a [Candidate<'f>],
        kv: KvType,
    ) -> Self {
        Self { facts, asked, candidates, kv }
    }

    /// The best of them.
    pub(super) fn best(&self) -> Result<Attempt<'a>, DecideError> {
        let memory_bytes = match self.asked.goal {
            Goal::Memory => self.least_memory()?,
            Goal::Speed | Goal::Energy => self.asked.memory_bytes,
        };
        let chunk_tokens = match self.asked.chunk_tokens {
            Some(chunk) => chunk,
            None => self.best_chunk(memory_bytes)?,
        };
        let smallest = self.attempt(memory_bytes, chunk_tokens)?;
        match (self.asked.context_tokens, self.asked.goal) {
            (None, Goal::Speed | Goal::Energy) => self.longest(memory_bytes, smallest),
            (Some(_), _) | (None, Goal::Memory) => Ok(smallest),
        }
    }

    /// As long, in chunks as large and within as much as another.
    pub(super) fn like(&self, other: &Attempt<'_>) -> Result<Attempt<'a>, DecideError> {
        let SessionShape { chunk_tokens, context_tokens, .. } = other.session;
        let memory_bytes = match self.asked.goal {
            Goal::Memory => other.residence.memory_bytes,
            Goal::Speed | Goal::Energy => self.asked.memory_bytes,
        };
        self.sized(memory_bytes, chunk_tokens, context_tokens)
    }

    fn attempt(&self, memory: Option<u64>, chunk: u32) -> Result<Attempt<'a>, DecideError> {
        self.sized(memory, chunk, self.asked.least_context())
    }

    fn sized(
        &self,
        memory_bytes: Option<u64>,
        chunk_tokens: u32,
        context_tokens: u32,
    ) -> Result<Attempt<'a>, DecideError> {
        let size = Size { memory_bytes, chunk_tokens, context_tokens, kv: self.kv };
        Attempt::new(self.facts, self.asked, self.candidates, size)
    }

    /// The attempt with the longest context that is hardly slower than the `smallest`.
    fn longest(
        &self,
        memory_bytes: Option<u64>,
        smallest: Attempt<'a>,
    ) -> Result<Attempt<'a>, DecideError> {
        let least = self.decode_rate(&smallest)? / CONTEXT_COST;
        let loading = smallest.residence.loading;
        for context_tokens in context::lengths(self.facts, self.asked, &smallest) {
            let chunk_tokens = smallest.session.chunk_tokens;
            match self.sized(memory_bytes, chunk_tokens, context_tokens) {
                Ok(attempt)
                    if attempt.residence.loading == loading
                        && self.decode_rate(&attempt)? >= least =>
                {
                    return Ok(attempt);
                }
                Ok(_) | Err(DecideError::Memory(_) | DecideError::DeviceTooSmall { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(smallest)
    }

    /// Seconds for a prompt and its answer.
    fn seconds(&self, attempt: &Attempt<'_>) -> Result<f64, DecideError> {
        let calibration = attempt.calibration(self.facts, self.asked)?;
        let (prefill, decode) = attempt.predict(self.facts, self.asked, &calibration, None);
        let prompt_s = f64::from(self.asked.prompt_tokens) / prefill.tokens_per_s;
        Ok(prompt_s + ANSWER_TOKENS / decode.tokens_per_s)
    }

    /// Tokens per second.
    pub(super) fn decode_rate(&self, attempt: &Attempt<'_>) -> Result<f64, DecideError> {
        let calibration = attempt.calibration(self.facts, self.asked)?;
        let (_, decode) = attempt.predict(self.facts, self.asked, &calibration, None);
        Ok(decode.tokens_per_s)
    }

    /// N7: the default chunk, unless another is clearly faster for a prompt and its answer (a
    /// smaller one leaves memory to experts, a larger one reads them fewer times) or only a smaller
    /// one fits. Costs that nobody
    /// measured are no reason to leave the default.
    fn best_chunk(&self, memory: Option<u64>) -> Result<u32, DecideError> {
        let mut best: Option<(u32, f64)> = None;
        let mut refused: Option<DecideError> = None;
        for chunk in self.asked.chunks() {
            match self.attempt(memory, chunk) {
                Ok(attempt) => {
                    let seconds = self.seconds(&attempt)?;
                    if best.is_none_or(|(_, least)| seconds * CHUNK_GAIN < least) {
                        best = Some((chunk, seconds));
                    }
                    if self.facts.measured.is_none() {
                        break;
                    }
                }
                // The last is of the smallest chunk: the least that would be needed.
                Err(error @ DecideError::Memory(_)) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        match (best, refused) {
            (Some((chunk, _)), _) => Ok(chunk),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(CHUNKS[0]),
        }
    }

    /// The least memory that keeps most of the decode speed all of it would give; `None` when
    /// that is everything.
    fn least_memory(&self) -> Result<Option<u64>, DecideError> {
        let chunk = match self.asked.chunk_tokens {
            Some(chunk) => chunk,
            None => self.best_chunk(self.asked.memory_bytes)?,
        };
        let speed = |memory| self.decode_rate(&self.attempt(memory, chunk)?);
        let enough = speed(self.asked.memory_bytes)? * MEMORY_GOAL_SPEED;
        let all = self.attempt(self.asked.memory_bytes, chunk)?;
        let sensible = all.budget.largest_sensible_bytes();
        let most = all.residence.memory_bytes.map_or(sensible, |bytes| bytes.min(sensible));
        let least = all.budget.smallest_bytes().min(most);
        let step = ((most - least) / MEMORY_STEPS).max(1);
        let mut budgets = (0..MEMORY_STEPS).map(|at| least + at * step);
        let found = budgets.find(|bytes| speed(Some(*bytes)).is_ok_and(|speed| speed >= enough));
        Ok(found.or(self.asked.memory_bytes))
    }
}
