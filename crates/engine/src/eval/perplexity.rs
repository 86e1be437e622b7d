//! Perplexity: a text cut into windows, every token of a window predicted from those
//! before it. The interval is over windows, which are far less dependent than tokens.

use super::likelihood::log_probability;
use super::statistics::{Interval, mean_interval};
use crate::engine::Engine;
use crate::session::{Session, SessionError};
use motley_ggml::TokenizeError;
use serde::Serialize;

/// How the tokens of a window are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// In chunks, as a prompt.
    Chunks,
    /// One after the other, as an answer.
    TokenByToken,
}

/// A text as windows of tokens.
///
/// Window `i` reads tokens `[i·w, (i+1)·w)` and predicts `[i·w + 1, (i+1)·w + 1)`, so
/// windows do not overlap and each scores `w` tokens. What is left at the end is not
/// scored. A model that wants a beginning token gets it in front of every window.
#[derive(Debug, Clone)]
pub struct Windows {
    tokens: Vec<i32>,
    begin: Vec<i32>,
    window_tokens: usize,
    count: usize,
}

impl Windows {
    /// Cuts `text` into at most `limit` windows of `window_tokens`.
    pub fn of(
        engine: &Engine,
        text: &str,
        window_tokens: usize,
        limit: usize,
    ) -> Result<Self, TokenizeError> {
        let (tokens, begin) = (engine.tokenize_plain(text)?, engine.begin_tokens()?);
        let window_tokens = window_tokens.max(1);
        let whole = tokens.len().saturating_sub(1) / window_tokens;
        Ok(Self { tokens, begin, window_tokens, count: whole.min(limit) })
    }

    /// Windows there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Tokens of the whole text.
    pub fn text_tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Room a session needs for one window.
    pub fn context_tokens(&self) -> usize {
        self.begin.len() + self.window_tokens
    }

    /// Mean negative log-likelihood of window `index`, nats per token. `on_logits` sees those of every
    /// token that is scored.
    pub fn score(
        &self,
        session: &mut Session,
        (index, pace): (usize, Pace),
        on_logits: &mut dyn FnMut(&[f32]),
    ) -> Result<f64, SessionError> {
        let start = index * self.window_tokens;
        let read = &self.tokens[start..start + self.window_tokens];
        let predicted = &self.tokens[start + 1..=start + self.window_tokens];
        session.clear();
        let input: Vec<i32> = self.begin.iter().chain(read).copied().collect();
        let mut sum = 0.0;
        let mut seen = |at: usize, logits: &[f32]| {
            if let Some(at) = at.checked_sub(self.begin.len()) {
                sum -= log_probability(logits, predicted[at]);
                on_logits(logits);
            }
        };
        match pace {
            Pace::Chunks => session.score(&input, &mut seen)?,
            Pace::TokenByToken => {
                for (at, &token) in input.iter().enumerate() {
                    session.decode(token)?;
                    seen(at, session.logits());
                }
            }
        }
        Ok(sum / self.window_tokens as f64)
    }
}

/// Perplexity of a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Perplexity {
    pub tokens: usize,
    /// Mean negative log-likelihood in nats per token, over windows.
    pub nll: Interval,
    /// Its exponential.
    pub perplexity: Interval,
    /// Each window's mean, in order: what a paired comparison takes.
    pub window_nll: Vec<f64>,
}

impl Perplexity {
    /// From the means of all windows of `window_tokens`.
    ///
    /// # Panics
    /// When there is no window.
    pub fn of(window_nll: Vec<f64>, window_tokens: usize) -> Self {
        let nll = mean_interval(&window_nll);
        Self {
            tokens: window_nll.len() * window_tokens,
            nll,
            perplexity: nll.map(f64::exp),
            window_nll,
        }
    }

    /// Perplexity of `second` over this one's, window by window.
    pub fn ratio(&self, second: &Self) -> Interval {
        let pairs = self.window_nll.iter().zip(&second.window_nll);
        let differences: Vec<f64> = pairs.map(|(first, second)| second - first).collect();
        mean_interval(&differences).map(f64::exp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paired_ratio_is_narrower_than_two_intervals() {
        let first = Perplexity::of(vec![3.0, 4.0, 5.0, 2.0], 512);
        let second = Perplexity::of(vec![3.01, 4.012, 5.008, 2.01], 512);
        assert_eq!(first.tokens, 2048);
        let ratio = first.ratio(&second);
        assert!((ratio.value - 0.01_f64.exp()).abs() < 1e-9, "{ratio:?}");
        assert!(ratio.low > 1.0, "the difference is clear in pairs: {ratio:?}");
        assert!(first.perplexity.holds(second.perplexity.value), "and lost between intervals");
    }
}
