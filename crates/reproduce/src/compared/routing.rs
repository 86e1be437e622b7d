//! One stream of tokens for the comparison, cut into parts: counted, decoded, and read as prompts.

use motley_sim::synth::Synth;
use motley_trace::{Phase, Trace, Visit};

use super::cut::as_prompt;
use super::model::Model;
use crate::error::ReproduceError;

/// Of the counted tokens those on which ours chooses its settings; caches go on from there.
const WARMED: u64 = 64;
const SEED: u64 = 11;

/// How many tokens a stream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// From which the frequency of experts is counted before anything is measured.
    pub counted: u32,
    pub decoded: u32,
    /// Of the longest prompt.
    pub prompt: u32,
}

impl Length {
    /// What documents are made from.
    pub const WHOLE: Self = Self { counted: 256, decoded: 192, prompt: 1024 };
}

/// A model's routing.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Activations counted over the first tokens, dense by grid index.
    pub uses: Vec<u64>,
    /// Tokens decoded one by one before anything is measured.
    pub warm: Trace,
    /// The same, and the tokens that are measured.
    pub decode: Trace,
    /// First pass that is measured.
    pub measured_from: u64,
    /// Tokens after them, for prompts; empty for recorded ones.
    rest: Trace,
}

impl Stream {
    /// Synthetic, with the model's statistics.
    pub fn synthetic(model: &Model, skew_factor: f64) -> Result<Self, ReproduceError> {
        Self::of_length(model, skew_factor, Length::WHOLE)
    }

    /// The same with as many tokens as asked for.
    pub fn of_length(
        model: &Model,
        skew_factor: f64,
        length: Length,
    ) -> Result<Self, ReproduceError> {
        let Length { counted, decoded, prompt } = length;
        let params = model.synth_params(counted + decoded + prompt, skew_factor);
        let all = Trace::collect(&mut Synth::new(params, SEED)?)?;
        let decoded = u64::from(counted)..u64::from(counted + decoded);
        Ok(Self::cut(&all, decoded))
    }

    /// A recorded trace: frequencies of its first half, its second half decoded.
    pub fn recorded(trace: &Trace) -> Self {
        Self::cut(trace, trace.middle_pass()..u64::MAX)
    }

    fn cut(all: &Trace, decoded: std::ops::Range<u64>) -> Self {
        let part = |wanted: &dyn Fn(&Visit) -> bool| Trace {
            header: all.header.clone(),
            visits: all.visits.iter().filter(|visit| wanted(visit)).cloned().collect(),
        };
        let warm = decoded.start.saturating_sub(WARMED)..decoded.start;
        let within = |visit: &Visit, passes: std::ops::Range<u64>| {
            visit.phase == Phase::Decode && passes.contains(&visit.pass)
        };
        Self {
            uses: all.uses_before(decoded.start),
            warm: part(&|visit| within(visit, warm.clone())),
            measured_from: decoded.start,
            decode: part(&|visit| within(visit, warm.start..decoded.end)),
            rest: part(&|visit| visit.pass >= decoded.end),
        }
    }

    /// The first tokens after the decoded ones as one prompt in one pass.
    pub fn prompt(&self, tokens: u32) -> Trace {
        as_prompt(&self.rest, tokens)
    }

    /// The tokens before anything is measured, and then the prompt.
    pub fn warm_prompt(&self, tokens: u32) -> Trace {
        let mut all = self.warm.clone();
        let visits = self.prompt(tokens).visits.into_iter();
        all.visits.extend(visits.map(|visit| Visit { pass: self.measured_from, ..visit }));
        all
    }
}
