//! One request on its way: what was asked, the sampler and the text so far. Knows
//! nothing of the cache.

use super::compute::Compute;
use super::stop::StopText;
use super::times::{AnswerTimes, Stages};
use crate::text::sampling::{self, BadLogits};
use crate::{Constraint, ConstraintError, Sampling, TextStream};
use motley_ggml::{Sampler, TokenBias};
use motley_model::Embedding;
use motley_sched::batch::{Client, StepPart};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Most alternatives shown beside a token.
pub(super) const TOP_CANDIDATES_MAX: usize = 20;

/// What to answer, and how.
#[derive(Default)]
pub struct Ask {
    /// Who asks, and what it is given beside others.
    pub client: Client,
    /// Time for all of it, from now on: nobody wants the answer after that.
    pub deadline: Option<Duration>,
    /// Tokens of the prompt; all choices of a request share them.
    pub prompt: Arc<[i32]>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// What is added to the logits of some tokens.
    pub biases: Arc<[TokenBias]>,
    /// What may be said at all.
    pub constraint: Option<Constraint>,
    /// Most tokens to answer with.
    pub max_tokens: usize,
    /// Strings that end the answer and are not part of it.
    pub stop: Arc<[String]>,
    /// Log-probabilities of each token, with so many alternatives.
    pub candidates: Option<usize>,
    /// Go on past the model's end token; a constraint that is satisfied ends all the same.
    pub ignore_end: bool,
    /// Show control tokens written out, for formats that are made of them.
    pub control_tokens: bool,
    /// The prompt's vector is wanted, and no answer.
    pub embeds: bool,
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// More of the answer.
    Piece(Piece),
    /// The prompt's vector, or its scores of a model that ranks.
    Vector(Vec<f32>),
    /// The answer is whole.
    Done(Done),
    /// It failed; the reason.
    Failed(String),
    /// Its time was over before it had said anything.
    Late,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Text that is sure now; may be empty.
    pub text: String,
    /// The token behind it, when log-probabilities were asked for.
    pub token: Option<SaidToken>,
}

/// A token and how likely it was, before sampling settings.
#[derive(Debug, Clone, PartialEq)]
pub struct SaidToken {
    /// The token itself.
    pub said: Candidate,
    /// The likeliest tokens there, best first.
    pub top: Vec<Candidate>,
}

/// A token that could have been said.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub token: i32,
    /// Its bytes, not always whole UTF-8.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The model was done.
    Stop,
    /// This one of the request's stop strings came.
    StopString(usize),
    /// As long as it may get, or its time is over.
    Length,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    pub reason: Reason,
    pub prompt_tokens: usize,
    /// Those of them that were computed for others before.
    pub reused_tokens: usize,
    pub answer_tokens: usize,
    pub times: AnswerTimes,
}

/// A request that the thread works on.
pub(super) struct Stream {
    sampler: Sampler,
    constraint: Option<Constraint>,
    text: TextStream,
    stop: StopText,
    candidates: Option<usize>,
    ignore_end: bool,
    control_tokens: bool,
    max_tokens: usize,
    pub(super) embeds: bool,
    done: Done,
    pub(super) events: mpsc::Sender<Event>,
    /// When its time is over, by the clock of the worker.
    pub(super) ends_at: Option<Duration>,
    pub(super) stages: Stages,
    /// Whether its first tokens have been computed.
    pub(super) begun: bool,
}

/// What follows from a sampled token.
pub(super) enum Next {
    /// Compute this one.
    Token(i32),
    /// The answer is whole.
    End(Reason),
    /// No token fits the constraint, or it is too much work to say which; the reason.
    Stuck(String),
    /// The context has no logits here.
    Silent,
    /// The model computed nothing to choose from.
    Failed(BadLogits),
}

impl Stream {
    /// A request that was handed in at `came`.
    pub(super) fn new(
        ask: Ask,
        vocab_size: usize,
        events: mpsc::Sender<Event>,
        came: Duration,
    ) -> Self {
        let mut sampler = ask.sampling.sampler(vocab_size, &ask.biases);
        ask.prompt.iter().for_each(|&token| sampler.accept(token));
        Self {
            sampler,
            text: TextStream::default(),
            stop: StopText::new(ask.stop),
            candidates: ask.candidates.map(|count| count.min(TOP_CANDIDATES_MAX)),
            ignore_end: ask.ignore_end && ask.constraint.is_none(),
            constraint: ask.constraint,
            control_tokens: ask.control_tokens,
            max_tokens: ask.max_tokens,
            embeds: ask.embeds,
            done: Done {
                reason: Reason::Length,
                prompt_tokens: ask.prompt.len(),
                reused_tokens: 0,
                answer_tokens: 0,
                times: AnswerTimes::default(),
            },
            events,
            ends_at: ask.deadline.map(|time| came.saturating_add(time)),
            stages: Stages::new(came),
            begun: false,
        }
    }

    pub(super) fn reused(&mut self, tokens: usize) {
        self.done.reused_tokens = tokens;
    }

    /// Samples from the logits at `index`, sends what is sure, says how to go on.
    pub(super) fn sample(&mut self, compute: &impl Compute, index: usize) -> Next {
        let Some(logits) = compute.logits(index) else { return Next::Silent };
        if let Err(bad) = sampling::check(logits) {
            return Next::Failed(bad);
        }
        let token = match &mut self.constraint {
            Some(constraint) => sampling::sample_within(&mut self.sampler, constraint, logits),
            None => self.sampler.sample_from(logits).ok_or(ConstraintError::Stuck),
        };
        let token = match token {
            Ok(token) => token,
            Err(error) => return Next::Stuck(error.to_string()),
        };
        self.done.answer_tokens += 1;
        if compute.is_end(token) && !self.ignore_end {
            return Next::End(Reason::Stop);
        }
        let text = self.text.push(&compute.token_bytes(token, self.control_tokens));
        let (text, stopped) = self.stop.push(&text);
        let said = self.candidates.and_then(|top| said(compute, logits, token, top));
        if !text.is_empty() || said.is_some() {
            self.send(Event::Piece(Piece { text, token: said }));
        }
        if let Some(index) = stopped {
            Next::End(Reason::StopString(index))
        } else if self.done.answer_tokens >= self.max_tokens {
            Next::End(Reason::Length)
        } else {
            Next::Token(token)
        }
    }

    /// Sends the vector of the prompt, whose last rows are `part`.
    pub(super) fn embed(
        &self,
        compute: &impl Compute,
        part: &StepPart,
        embedding: Option<Embedding>,
    ) -> Next {
        if part.first > 0 && !embedding.is_some_and(Embedding::in_pieces) {
            return Next::Stuck("the text was computed in pieces".to_owned());
        }
        match compute.vector(part.sequence.into()) {
            Some(vector) if vector.iter().all(|number| number.is_finite()) => {
                self.send(Event::Vector(vector.to_vec()));
                Next::End(Reason::Stop)
            }
            Some(_) => Next::Stuck("the model computed a vector that is not finite".to_owned()),
            None => Next::Silent,
        }
    }

    /// Sends what was held back and the end, which is `now`.
    pub(super) fn end(mut self, reason: Reason, now: Duration) {
        let rest = self.text.finish();
        let (mut text, stopped) = self.stop.push(&rest);
        if stopped.is_none() {
            text.push_str(&self.stop.finish());
        }
        if !text.is_empty() {
            self.send(Event::Piece(Piece { text, token: None }));
        }
        let times = self.stages.end(now);
        self.send(Event::Done(Done { reason, times, ..self.done }));
    }

    /// The time is over `now`: what was said stays, and nothing is no answer.
    pub(super) fn end_late(self, now: Duration) {
        match self.done.answer_tokens {
            0 => self.send(Event::Late),
            _ => self.end(Reason::Length, now),
        }
    }

    pub(super) fn send(&self, event: Event) {
        // The channel holds a whole answer; a receiver that is gone is seen next step.
        let _ = self.events.try_send(event);
    }
}

/// The token and the `top` likeliest ones, with their log-probabilities.
fn said(compute: &impl Compute, logits: &[f32], token: i32, top: usize) -> Option<SaidToken> {
    let norm = log_sum_exp(logits);
    let candidate = |id: usize| Candidate {
        token: id as i32,
        bytes: compute.token_bytes(id as i32, true).into_owned(),
        logprob: logits[id] - norm,
    };
    let said = candidate(usize::try_from(token).ok()?);
    Some(SaidToken { said, top: largest(logits, top).into_iter().map(candidate).collect() })
}

fn log_sum_exp(logits: &[f32]) -> f32 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit - max).exp()).sum();
    max + sum.ln() as f32
}

/// Indices of the `count` largest values, largest first; equal ones in order.
fn largest(values: &[f32], count: usize) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(count + 1);
    for (at, value) in values.iter().enumerate() {
        if best.len() == count && best.last().is_none_or(|&last| values[last] >= *value) {
            continue;
        }
        let place = best.partition_point(|&other| values[other] >= *value);
        best.insert(place, at);
        best.truncate(count);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_in_order() {
        let values = [1.0, 5.0, 3.0, 5.0, -1.0];
        assert_eq!(largest(&values, 3), [1, 3, 2]);
        assert_eq!(largest(&values, 0), [0_usize; 0]);
        assert_eq!(largest(&values, 9), [1, 3, 2, 0, 4]);
    }

    #[test]
    fn probabilities_add_up() {
        let logits = [0.0, 1.0, -2.0, 30.0];
        let norm = log_sum_exp(&logits);
        let sum: f32 = logits.iter().map(|logit| (logit - norm).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-6);
    }
}
