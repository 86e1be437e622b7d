//! A draft model beside a session: a small one of the same vocabulary, whose most likely tokens are
//! guesses for the session's. Its context holds what the session's holds, as far as it was asked:
//! before each question what differs is taken back, and what is missing is computed. So nothing
//! that happens to the session (a turn begun anew, an answer stopped, an error) has to be told.
//!
//! ```text
//! session   a b c d │ e        e was chosen and is computed next
//! draft     a b c x y          x and y were guesses; d came instead
//! begin     a b c   │ d e      x y taken back; d and e wait
//! next      a b c d e │ f      f is likely; computed when another is asked for
//! ```

use super::error::DraftRefused;
use super::follower::Follower;
use super::{Session, SessionError};
use crate::chunk::Logits;
use crate::clock::now;
use motley_ggml::{DecodeError, Pools};
use motley_sched::Phase;
use motley_sched::speculate::{Asked, Guess, Kind, MOST_GUESSES};
use motley_trace::DraftRecord;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// More waiting tokens than this are computed as a prompt.
const FEW: usize = MOST_GUESSES;

/// A draft model's timeline.
type Draft = Follower<Session>;

impl Session {
    /// Has `draft`, a session of a small model with the same vocabulary that has computed nothing,
    /// guess tokens for this one, which guesses ahead. Computes on this session's threads.
    pub fn use_draft(&mut self, mut draft: Self) -> Result<(), SessionError> {
        let Some(speculation) = &mut self.speculation else {
            return Err(DraftRefused::NothingGuessed.into());
        };
        let (model, small) = (self.context.model(), draft.context.model());
        if !small.keeps_every_position() {
            return Err(DraftRefused::TakesNoneBack.into());
        }
        let (model, small) = (model.vocab_size(), small.vocab_size());
        if model != small {
            return Err(DraftRefused::Tokens { draft: small, model }.into());
        }
        speculation.use_draft();
        draft.keep_threads();
        draft.clear();
        let figures = self.stats.speculation.get_or_insert_default();
        figures.draft = Some(DraftRecord::default());
        self.draft = Some(Draft::new(draft));
        Ok(())
    }

    /// What the draft model did of a session's work, where there is one.
    pub(super) fn draft_follows(&mut self) -> Result<(), SessionError> {
        let (Some(draft), Some(speculation)) = (&mut self.draft, &mut self.speculation) else {
            return Ok(());
        };
        let start = now();
        let cancelled = self.context.cancel_flag();
        let asked = draft.follow(speculation.tokens(), &cancelled);
        self.stats.prefill_draft_time += start.elapsed();
        asked?.iter().for_each(|asked| speculation.learn_asked(asked));
        Ok(())
    }

    /// Tokens that may follow `last`, at most `most`, and how many of them are computed: found in
    /// the text, or given by the draft model.
    pub(super) fn guess(&mut self, last: i32, most: usize) -> Result<(Guess, Asked), SessionError> {
        let mut asked = Asked::default();
        let Some(speculation) = &self.speculation else { return Ok((Guess::default(), asked)) };
        let found = speculation.found(last, most);
        let draft = self.draft.as_mut().filter(|_| speculation.thinks_of_draft(&found));
        let Some(draft) = draft else { return Ok((found, asked)) };
        let most = most.min(draft.room(speculation.tokens().len()));
        let cancelled = self.context.cancel_flag();
        let (start, mut drafted) = (now(), Guess::default());
        asked.behind = draft.begin(speculation.tokens(), last);
        while speculation.asks(&drafted, &asked, most) && !cancelled.load(Relaxed) {
            let (token, probability) = draft.next(&cancelled)?;
            drafted.push(token, Kind::drafted(probability));
            asked.tokens += 1;
            asked.time_us = 1e6 * start.elapsed().as_secs_f64();
        }
        if drafted.tokens.is_empty() {
            return Ok((found, Asked::default()));
        }
        let took = Duration::from_secs_f64(asked.time_us / 1e6);
        self.stats.decode_time += took;
        self.stats.decode_draft_time += took;
        speculation.choose(&mut drafted, &asked);
        Ok((drafted, asked))
    }
}

impl Draft {
    /// How many guesses its context has room for, after so many tokens and one more.
    fn room(&self, tokens: usize) -> usize {
        (self.session.options.context_tokens as usize).saturating_sub(tokens)
    }

    pub(super) fn set_pools(&mut self, pools: Pools) {
        self.session.context.set_pools(pools);
    }

    /// Holds `tokens`, the last of them computed alone, as guesses are; what both took. Nothing
    /// where its context has no room for them.
    fn follow(
        &mut self,
        tokens: &[i32],
        cancelled: &AtomicBool,
    ) -> Result<Vec<Asked>, SessionError> {
        let Some((&last, before)) = tokens.split_last() else { return Ok(Vec::new()) };
        if self.room(before.len()) == 0 {
            return Ok(Vec::new());
        }
        let behind = self.begin(before, last);
        let mut asked = Vec::new();
        let waiting = std::mem::take(&mut self.waiting);
        let (missing, alone) = waiting.split_at(behind);
        let steps = [(missing, behind, 0), (alone, 0, 1)];
        for (part, behind, tokens) in steps.into_iter().filter(|step| !step.0.is_empty()) {
            let start = now();
            self.compute(part, cancelled)?;
            asked.push(Asked { tokens, behind, time_us: 1e6 * start.elapsed().as_secs_f64() });
        }
        Ok(asked)
    }

    /// Before questions about what follows `last`, which follows `tokens`: takes back what differs.
    /// How many tokens have to be computed first, beside `last`.
    fn begin(&mut self, tokens: &[i32], last: i32) -> usize {
        let same = self.held.iter().zip(tokens).take_while(|(held, token)| held == token).count();
        if same < self.held.len() {
            if !self.session.truncate(same as u32) {
                self.session.clear();
            }
            self.held.truncate(self.session.len() as usize);
        }
        let missing = &tokens[self.held.len()..];
        self.waiting = [missing, &[last]].concat();
        missing.len()
    }

    /// The most likely token after those that wait, and its probability. It waits then.
    fn next(&mut self, cancelled: &AtomicBool) -> Result<(i32, f32), SessionError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.compute(&waiting, cancelled)?;
        let (token, probability) = likeliest(self.session.logits());
        self.waiting.push(token);
        Ok((token, probability))
    }

    /// Computes `tokens` after what is held; after an error what its cache holds is held still.
    fn compute(&mut self, tokens: &[i32], cancelled: &AtomicBool) -> Result<(), SessionError> {
        let phase = if tokens.len() > FEW { Phase::Prefill } else { Phase::Decode };
        for chunk in tokens.chunks(self.session.batch_tokens().max(1)) {
            let computed = match cancelled.load(Relaxed) {
                true => Err(DecodeError::Cancelled.into()),
                false => self.session.compute(phase, chunk, Logits::Last),
            };
            if let Err(error) = computed {
                // The flag is for what this session would have computed next.
                cancelled.store(false, Relaxed);
                self.held.truncate(self.session.len() as usize);
                return Err(SessionError::Draft(Box::new(error)));
            }
            self.held.extend(chunk);
        }
        Ok(())
    }
}

/// The largest of `logits` (`[vocab]`, checked to be numbers), and its probability.
fn likeliest(logits: &[f32]) -> (i32, f32) {
    let larger = |best: (usize, f32), (at, &logit)| if logit > best.1 { (at, logit) } else { best };
    let (token, most) = logits.iter().enumerate().fold((0, f32::NEG_INFINITY), larger);
    let all: f32 = logits.iter().map(|logit| (logit - most).exp()).sum();
    (token as i32, 1.0 / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_token_and_how_likely_it_is() {
        assert_eq!(likeliest(&[0.0, 0.0]), (0, 0.5));
        let (token, probability) = likeliest(&[f32::NEG_INFINITY, 1.0, 1.0 + 3f32.ln()]);
        assert!(token == 2 && (probability - 0.75).abs() < 1e-6, "{probability}");
    }
}
