//! Generating: tokens chosen one after the other and, where a session speculates, computed before
//! they are known.
//!
//! ```text
//! computed   … x │ a  b  c       x was chosen, a b c are guessed; one pass, a row of logits each
//! chosen         │ a  b  d       by the same sampler, row by row
//! kept       … x │ a  b          c is taken back, and d is computed next
//! ```
//!
//! A row counts only when every token before it was chosen, so the sampler sees what it would see
//! one by one. What may differ is rounding: kernels sum several rows in another order than one
//! (docs/decisions/0060).

use super::{Session, SessionError};
use crate::clock::now;
use crate::text::sampling::{BadLogits, Sampling};
use motley_ggml::Sampler;
use motley_sched::speculate::{Asked, Guess, Pass, Source, Speculation};
use motley_trace::SpeculationRecord;
use std::ops::ControlFlow;
use std::time::Duration;

/// What a guessed token is believed to add to a pass, over the time of a token alone, before it is
/// measured: where experts come from disk, most tokens bring their own.
const STREAMED_GROWTH: f64 = 0.8;
/// The same where all are in memory.
const RESIDENT_GROWTH: f64 = 0.5;

/// What to generate.
#[derive(Debug, Clone, Copy)]
pub struct Generation {
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Most tokens to generate.
    pub max_tokens: usize,
    /// Go on past the model's end token.
    pub ignore_end: bool,
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model said it is done.
    End,
    /// `max_tokens` or the context's end was reached.
    Length,
    /// The caller stopped it.
    Stopped,
}

/// A pass whose rows nothing was chosen by yet.
struct Ahead {
    guess: Guess,
    /// What a draft model was asked for it.
    asked: Asked,
    took: Duration,
}

/// An answer on its way to the caller.
struct Answer<'a> {
    generation: &'a Generation,
    on_token: &'a mut dyn FnMut(i32) -> ControlFlow<()>,
    produced: usize,
}

impl Answer<'_> {
    /// Shows a token to the caller; why the answer ends with it, if it does.
    fn say(&mut self, token: i32, ends: bool, full: bool) -> Option<Finish> {
        if ends && !self.generation.ignore_end {
            return Some(Finish::End);
        }
        if (self.on_token)(token).is_break() {
            return Some(Finish::Stopped);
        }
        self.produced += 1;
        (self.left() == 0 || full).then_some(Finish::Length)
    }

    fn left(&self) -> usize {
        self.generation.max_tokens.saturating_sub(self.produced)
    }
}

impl Session {
    /// Computes `prompt`, then tokens, each shown to `on_token` before anything that follows from
    /// it is chosen; `ControlFlow::Break` stops.
    pub fn generate(
        &mut self,
        prompt: &[i32],
        generation: &Generation,
        on_token: &mut dyn FnMut(i32) -> ControlFlow<()>,
    ) -> Result<Finish, SessionError> {
        let mut sampler = generation.sampling.sampler(self.context.model().vocab_size(), &[]);
        prompt.iter().for_each(|&token| sampler.accept(token));
        self.prefill(prompt)?;
        let mut answer = Answer { generation, on_token, produced: 0 };
        let mut ahead = None;
        while answer.left() > 0 {
            match self.choose_by_rows(&mut sampler, ahead.as_ref(), &mut answer)? {
                ControlFlow::Break(finish) => return Ok(finish),
                ControlFlow::Continue(token) => ahead = Some(self.advance(token, answer.left())?),
            }
        }
        Ok(Finish::Length)
    }

    /// Computes `token` and what is guessed to follow it, within the `left` tokens of an answer.
    fn advance(&mut self, token: i32, left: usize) -> Result<Ahead, SessionError> {
        let room = self.options.context_tokens.saturating_sub(self.position + 1);
        let most =
            left.saturating_sub(1).min(room as usize).min(self.batch_tokens().saturating_sub(1));
        let (guess, asked) = self.guess(token, most)?;
        let took = self.decode_rows(&[&[token], guess.computed()].concat())?;
        Ok(Ahead { guess, asked, took })
    }

    /// Chooses a token by each row of the last pass, as long as the one before was guessed; the last
    /// one chosen, or why the answer ends. Guesses that were not chosen are taken back.
    fn choose_by_rows(
        &mut self,
        sampler: &mut Sampler,
        ahead: Option<&Ahead>,
        answer: &mut Answer<'_>,
    ) -> Result<ControlFlow<Finish, i32>, SessionError> {
        let guesses = ahead.map_or(&[][..], |ahead| ahead.guess.computed());
        let first = self.last_row.and_then(|last| last.checked_sub(guesses.len()));
        let kept = self.position - guesses.len() as u32;
        let mut accepted = 0;
        let chosen = loop {
            let token = match self.choose(sampler, first.map(|first| first + accepted)) {
                Ok(token) => token,
                Err(error) => break Err(error),
            };
            let full = kept + accepted as u32 >= self.options.context_tokens;
            if let Some(finish) = answer.say(token, self.context.model().is_end(token), full) {
                break Ok(ControlFlow::Break(finish));
            }
            if guesses.get(accepted) != Some(&token) {
                break Ok(ControlFlow::Continue(token));
            }
            accepted += 1;
        };
        self.take_back(kept + accepted as u32)?;
        self.last_row = first.map(|first| first + accepted);
        if let Some(ahead) = ahead {
            let last = match chosen {
                Ok(ControlFlow::Continue(token)) => Some(token),
                _ => None,
            };
            self.count(ahead, accepted, last);
        }
        chosen
    }

    /// The token of one row of the last pass.
    fn choose(&mut self, sampler: &mut Sampler, row: Option<usize>) -> Result<i32, SessionError> {
        let start = now();
        let chosen = row.and_then(|row| sampler.sample(&self.context, row));
        self.stats.sampling_time += start.elapsed();
        let (token, source) = (self.position as usize, BadLogits::NoneChosen);
        chosen.ok_or(SessionError::Logits { token, source })
    }

    /// Leaves `tokens` tokens. A memory that cannot be cut is emptied: never a wrong token in it.
    fn take_back(&mut self, tokens: u32) -> Result<(), SessionError> {
        if self.truncate(tokens) {
            return Ok(());
        }
        let taken = self.position - tokens;
        self.clear();
        Err(SessionError::CannotTakeBack { tokens: taken })
    }

    /// Notes what became of a pass: how many guesses were right, and which token came then, unless
    /// the answer ended before it was known.
    fn count(&mut self, ahead: &Ahead, accepted: usize, then: Option<i32>) {
        let Ahead { guess, asked, took } = ahead;
        let width = guess.width;
        self.stats.decode_tokens += accepted as u64;
        if let Some(figures) = &mut self.stats.speculation {
            figures.passes += 1;
            figures.guessed += width as u64;
            figures.accepted += accepted as u64;
            if let Some(draft) = &mut figures.draft {
                let drafts = guess.source() == Some(Source::Draft);
                let own = |tokens: usize| if drafts { tokens as u64 } else { 0 };
                draft.drafted += asked.tokens as u64;
                draft.guessed += own(width);
                draft.accepted += own(accepted);
            }
        }
        if let Some((speculation, then)) = self.speculation.as_mut().zip(then) {
            // A guess that was not computed may have been right.
            let more = accepted == width && guess.tokens.get(width) == Some(&then);
            let (kinds, right) = (guess.kinds.as_slice(), accepted + usize::from(more));
            let time_us = 1e6 * took.as_secs_f64();
            speculation.record(&Pass { kinds, width, right, time_us, asked: *asked });
        }
    }

    /// Has a session that was just made guess ahead; `streams` where experts come from disk.
    pub(super) fn speculating(mut self, streams: bool) -> Self {
        let growth = if streams { STREAMED_GROWTH } else { RESIDENT_GROWTH };
        if self.context.model().keeps_every_position() {
            self.speculation = Some(Speculation::new(growth));
            self.stats.speculation = Some(SpeculationRecord::default());
        }
        self
    }
}
