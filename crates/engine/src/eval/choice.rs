//! Multiple choice by log-likelihood: the continuation the model finds likeliest is its
//! answer, whole or per byte of its text (so that long choices do not lose by length).

use super::error::EvalError;
use super::likelihood::log_probability;
use super::prefix::{Prefix, common};
use super::question::Question;
use super::statistics::{Interval, PairedCounts, wilson};
use crate::engine::Engine;
use crate::session::Session;
use motley_ggml::TokenizeError;
use serde::Serialize;

/// How questions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Longer questions are left out, and counted.
    pub context_tokens: usize,
    /// Compute every question from its first token, as one that comes alone; otherwise
    /// examples are computed once for all.
    pub whole: bool,
}

/// One question's outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answered {
    /// Log-likelihood of each choice, nats.
    pub log_likelihood: Vec<f64>,
    /// Whether the likeliest choice is right.
    pub right: bool,
    /// Whether the likeliest per byte is.
    pub right_per_byte: bool,
}

/// All questions' outcomes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answers {
    /// Share of right answers.
    pub accuracy: Interval,
    /// The same by likelihood per byte.
    pub accuracy_per_byte: Interval,
    /// Questions too long for the context, or without a token to begin from.
    pub left_out: usize,
    /// In the order asked; `None` was left out.
    pub questions: Vec<Option<Answered>>,
}

impl Answers {
    fn of(questions: Vec<Option<Answered>>) -> Option<Self> {
        let asked: Vec<&Answered> = questions.iter().flatten().collect();
        let all = asked.len() as u64;
        let share = |right: fn(&Answered) -> bool| {
            wilson(asked.iter().filter(|answered| right(answered)).count() as u64, all)
        };
        (all > 0).then(|| Self {
            accuracy: share(|answered| answered.right),
            accuracy_per_byte: share(|answered| answered.right_per_byte),
            left_out: questions.len() - asked.len(),
            questions: questions.clone(),
        })
    }

    /// The same questions under two settings, by the likelihood of whole choices.
    pub fn paired(&self, second: &Self) -> PairedCounts {
        self.pairs(second, |answered| answered.right)
    }

    /// As [`Answers::paired`], by likelihood per byte.
    pub fn paired_per_byte(&self, second: &Self) -> PairedCounts {
        self.pairs(second, |answered| answered.right_per_byte)
    }

    fn pairs(&self, second: &Self, right: fn(&Answered) -> bool) -> PairedCounts {
        let both = self.questions.iter().zip(&second.questions);
        let asked = both.filter_map(|(first, second)| Some((first.as_ref()?, second.as_ref()?)));
        PairedCounts::of(asked.map(|(first, second)| (right(first), right(second))))
    }
}

/// Asks every question; `on_done` hears after each. `None` when all were too long.
pub fn answer_all(
    engine: &Engine,
    session: &mut Session,
    questions: &[Question],
    settings: Settings,
    on_done: &mut dyn FnMut(),
) -> Result<Option<Answers>, EvalError> {
    let mut prefix = Prefix::new(session);
    let mut answered = Vec::with_capacity(questions.len());
    for question in questions {
        if settings.whole {
            prefix.forget();
        }
        answered.push(answer(engine, &mut prefix, question, settings)?);
        on_done();
    }
    Ok(Answers::of(answered))
}

fn answer(
    engine: &Engine,
    prefix: &mut Prefix<'_>,
    question: &Question,
    settings: Settings,
) -> Result<Option<Answered>, EvalError> {
    let asked = Asked::of(engine, question)?;
    if asked.longest() > settings.context_tokens || asked.shared == 0 {
        return Ok(None);
    }
    let mut log_likelihood = Vec::with_capacity(asked.sequences.len());
    for sequence in &asked.sequences {
        let (shared, own) = sequence.split_at(asked.shared);
        let mut sum = log_probability(prefix.hold(shared)?, own[0]);
        if own.len() > 1 {
            prefix.try_out(&own[..own.len() - 1], &mut |at, logits| {
                sum += log_probability(logits, own[at + 1]);
            })?;
        }
        log_likelihood.push(sum);
    }
    let lengths = question.choices.iter().map(|choice| choice.len().max(1) as f64);
    let per_byte: Vec<f64> = log_likelihood.iter().zip(lengths).map(|(sum, n)| sum / n).collect();
    Ok(Some(Answered {
        right: likeliest(&log_likelihood) == question.answer,
        right_per_byte: likeliest(&per_byte) == question.answer,
        log_likelihood,
    }))
}

/// A question as tokens: one sequence per choice, the first `shared` tokens alike.
struct Asked {
    sequences: Vec<Vec<i32>>,
    shared: usize,
}

impl Asked {
    /// Prompt and choice are cut into tokens together; where a token reaches over their
    /// border, scoring begins with it, for every choice alike.
    fn of(engine: &Engine, question: &Question) -> Result<Self, TokenizeError> {
        let tokens = |text: &str| {
            let mut tokens = engine.begin_tokens()?;
            tokens.extend(engine.tokenize_plain(text)?);
            Ok::<_, TokenizeError>(tokens)
        };
        let prompt = tokens(&question.prompt)?;
        let whole = |choice: &String| tokens(&format!("{}{choice}", question.prompt));
        let sequences: Vec<Vec<i32>> =
            question.choices.iter().map(whole).collect::<Result<_, _>>()?;
        let alike = sequences
            .iter()
            .map(|sequence| common(&prompt, sequence).min(sequence.len().saturating_sub(1)));
        let shared = alike.min().unwrap_or(0);
        Ok(Self { sequences, shared })
    }

    fn longest(&self) -> usize {
        self.sequences.iter().map(Vec::len).max().unwrap_or(0)
    }
}

fn likeliest(scores: &[f64]) -> usize {
    let best = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.map_or(0, |(index, _)| index)
}
