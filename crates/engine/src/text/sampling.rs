//! How the next token is chosen: settings a person gives, as llama.cpp's samplers; and whether
//! there is anything to choose from.

use super::constraint::{Constraint, ConstraintError, Token, Vocabulary};
use motley_ggml::{Model, Sampler, SamplerStage, TokenBias};
use motley_model::SamplingHints;
use std::sync::OnceLock;

/// Of llama.cpp's server (`common_params_sampling`); its other values are [`Sampling::default`]'s.
const DEFAULT_TEMPERATURE: f32 = 0.8;

/// Sampling settings. The default is greedy: the same answer every time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// 0 takes the most likely token; higher is more varied.
    pub temperature: f32,
    /// Keep the `k` most likely; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set that reaches this probability; 1 keeps all.
    pub top_p: f32,
    /// Keep tokens at least this times as likely as the best; 0 keeps all.
    pub min_p: f32,
    /// Divide logits of recent tokens; 1 is none.
    pub repeat_penalty: f32,
    /// How many recent tokens the penalty looks at.
    pub repeat_window: u32,
    /// Subtract per earlier occurrence; 0 is none.
    pub frequency_penalty: f32,
    /// Subtract once for any earlier occurrence; 0 is none.
    pub presence_penalty: f32,
    /// Seed of the draw.
    pub seed: u32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            repeat_window: 64,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            seed: 0,
        }
    }
}

impl Sampling {
    /// What a person who says nothing gets: what the model's file says, else llama.cpp's server's
    /// values. The seed is the caller's to choose.
    pub fn of_model(hints: &SamplingHints) -> Self {
        let default = Self { temperature: DEFAULT_TEMPERATURE, ..Self::default() };
        Self {
            temperature: hints.temperature.unwrap_or(default.temperature),
            top_k: hints.top_k.unwrap_or(default.top_k),
            top_p: hints.top_p.unwrap_or(default.top_p),
            min_p: hints.min_p.unwrap_or(default.min_p),
            repeat_penalty: hints.repeat_penalty.unwrap_or(default.repeat_penalty),
            repeat_window: hints.repeat_window.unwrap_or(default.repeat_window),
            ..default
        }
    }

    /// The chain for these settings, in llama.cpp's default order.
    pub(crate) fn sampler(&self, vocab_size: usize, biases: &[TokenBias]) -> Sampler {
        let bias = (!biases.is_empty()).then(|| SamplerStage::Bias(biases.to_vec()));
        let stages: Vec<_> = bias.into_iter().chain(self.stages()).collect();
        Sampler::new(&stages, vocab_size)
    }

    fn stages(&self) -> Vec<SamplerStage> {
        let mut stages = Vec::new();
        if self.has_penalty() {
            stages.push(SamplerStage::Penalties {
                last_tokens: self.repeat_window as i32,
                repeat: self.repeat_penalty,
                frequency: self.frequency_penalty,
                presence: self.presence_penalty,
            });
        }
        if self.temperature <= 0.0 {
            stages.push(SamplerStage::Greedy);
            return stages;
        }
        stages.extend([
            SamplerStage::TopK(self.top_k as i32),
            SamplerStage::TopP(self.top_p),
            SamplerStage::MinP(self.min_p),
            SamplerStage::Temperature(self.temperature),
            SamplerStage::Draw(self.seed),
        ]);
        stages
    }

    fn has_penalty(&self) -> bool {
        self.repeat_penalty != 1.0 || self.frequency_penalty != 0.0 || self.presence_penalty != 0.0
    }
}

/// Why no token can be chosen from what a model computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadLogits {
    /// A logit that is no number, or larger than all.
    #[error(
        "the model computes {what} for entry {entry} of its vocabulary; its file is broken or was \
         converted wrongly, try another one"
    )]
    NotFinite {
        /// `NaN` or `infinity`.
        what: &'static str,
        /// The first such entry.
        entry: usize,
    },
    /// The same number for every token: what quantised matrices make of a state of NaNs.
    #[error(
        "the model computes the same number for every entry of its vocabulary, as NaN inside it \
         does; its file is broken or was converted wrongly, try another one"
    )]
    AllAlike,
    /// Every token has the probability 0.
    #[error(
        "the model leaves no token possible; its file is broken or was converted wrongly, try \
         another one"
    )]
    NonePossible,
    /// The samplers took none.
    #[error("the samplers chose no token")]
    NoneChosen,
}

/// Whether `logits` (`[vocab]`) are numbers to choose by. Single entries may be minus infinity:
/// models rule tokens out so.
pub(crate) fn check(logits: &[f32]) -> Result<(), BadLogits> {
    let Some(&first) = logits.first() else { return Err(BadLogits::NonePossible) };
    // No comparison with a NaN holds, and nothing but infinity is larger than the largest number.
    // Without branches, so that the compiler compares a whole register at a time.
    let (mut sound, mut alike) = (true, true);
    for &logit in logits {
        sound &= logit <= f32::MAX;
        alike &= logit == first;
    }
    if !sound {
        let is_bad = |logit: &f32| logit.is_nan() || *logit == f32::INFINITY;
        let entry = logits.iter().position(is_bad).unwrap_or(0);
        let what = if logits[entry].is_nan() { "NaN" } else { "infinity" };
        return Err(BadLogits::NotFinite { what, entry });
    }
    match alike && logits.len() > 1 {
        true if first == f32::NEG_INFINITY => Err(BadLogits::NonePossible),
        true => Err(BadLogits::AllAlike),
        false => Ok(()),
    }
}

/// One token within `constraint`, remembered by it and by the sampler. The chain is asked freely
/// first: most of the time its choice is allowed, and no mask of the whole vocabulary is needed.
pub(crate) fn sample_within(
    sampler: &mut Sampler,
    constraint: &mut Constraint,
    logits: &[f32],
) -> Result<i32, ConstraintError> {
    let token = match sampler.choose(logits) {
        Some(token) if constraint.allows(token)? => token,
        _ => {
            let mask = constraint.mask()?;
            let token = sampler.choose_among(logits, |token| mask.allows(token));
            token.ok_or(ConstraintError::Stuck)?
        }
    };
    constraint.accept(token)?;
    sampler.accept(token);
    Ok(token)
}

/// A model's tokens, arranged when the first constraint is made.
#[derive(Default)]
pub(crate) struct LazyVocabulary(OnceLock<Result<Vocabulary, ConstraintError>>);

impl LazyVocabulary {
    /// The tokens of `model`, which is the same every time.
    pub(crate) fn of(&self, model: &Model) -> Result<&Vocabulary, ConstraintError> {
        let token = |id| Token { bytes: model.token_bytes(id, false), ends: model.is_end(id) };
        let tokens = (0..model.vocab_size() as i32).map(token);
        let vocabulary = self.0.get_or_init(|| Vocabulary::new(tokens));
        vocabulary.as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_needs_no_draw() {
        assert_eq!(Sampling::default().stages(), [SamplerStage::Greedy]);
    }

    #[test]
    fn a_temperature_brings_the_whole_chain_and_the_seed_last() {
        let settings = Sampling { temperature: 0.8, seed: 7, ..Sampling::default() };
        let stages = settings.stages();
        assert_eq!(stages.len(), 5);
        assert_eq!(stages.last(), Some(&SamplerStage::Draw(7)));
    }

    #[test]
    fn penalties_come_first() {
        let settings = Sampling { repeat_penalty: 1.1, ..Sampling::default() };
        assert!(matches!(settings.stages()[0], SamplerStage::Penalties { last_tokens: 64, .. }));
    }

    #[test]
    fn logits_that_are_no_numbers_are_found_wherever_they_are() {
        let mut logits = vec![0.5; 1000];
        assert_eq!(check(&logits), Err(BadLogits::AllAlike));
        logits[7] = f32::NEG_INFINITY;
        assert_eq!(check(&logits), Ok(()));
        for (bad, what) in [(f32::NAN, "NaN"), (-f32::NAN, "NaN"), (f32::INFINITY, "infinity")] {
            for entry in [0, 7, 500, 999] {
                let mut logits = logits.clone();
                logits[entry] = bad;
                assert_eq!(check(&logits), Err(BadLogits::NotFinite { what, entry }));
            }
        }
        assert_eq!(check(&[f32::NEG_INFINITY; 64]), Err(BadLogits::NonePossible));
        assert_eq!(check(&[]), Err(BadLogits::NonePossible));
    }
}
