//! How far what a model says under one setting is from what it says under another: Kullback-Leibler
//! divergence of the distributions of the next token, over the same tokens. The first setting's
//! logits are kept in a file of their own, which has no name and goes with this process.

use super::statistics::{Interval, mean_interval};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// The first setting's logits, token after token.
pub struct Reference {
    file: BufWriter<File>,
    bytes: u64,
}

/// Logits cannot be kept, or read again.
#[derive(Debug, thiserror::Error)]
#[error(
    "logits of the first setting cannot be kept in {folder} after {bytes} bytes; give fewer --items or \
     a smaller --window, or name another folder with TMPDIR"
)]
pub struct ReferenceError {
    folder: String,
    bytes: u64,
    source: io::Error,
}

impl Reference {
    /// Of no token yet.
    pub fn start() -> Result<Self, ReferenceError> {
        let file = tempfile::tempfile().map_err(|source| failed(0, source))?;
        Ok(Self { file: BufWriter::new(file), bytes: 0 })
    }

    /// Whether no token is kept.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Keeps one token's logits.
    pub fn push(&mut self, logits: &[f32]) -> Result<(), ReferenceError> {
        self.bytes += size_of_val(logits) as u64;
        let mut each = logits.iter();
        let bytes = self.bytes;
        each.try_for_each(|logit| self.file.write_all(&logit.to_le_bytes()))
            .map_err(|source| failed(bytes, source))
    }

    /// From the first token on, once all are kept.
    pub fn read(&mut self) -> Result<ReferenceReader<'_>, ReferenceError> {
        let bytes = self.bytes;
        self.file.flush().map_err(|source| failed(bytes, source))?;
        let file = self.file.get_mut();
        file.rewind().map_err(|source| failed(bytes, source))?;
        Ok(ReferenceReader { file: BufReader::new(file), bytes, row: Vec::new() })
    }
}

/// Reads them in the order they were kept.
pub struct ReferenceReader<'a> {
    file: BufReader<&'a mut File>,
    bytes: u64,
    row: Vec<f32>,
}

impl ReferenceReader<'_> {
    /// How far `logits` of the next token are from those that were kept of it.
    pub fn next_divergence(&mut self, logits: &[f32]) -> Result<TokenDivergence, ReferenceError> {
        self.row.clear();
        let mut number = [0; 4];
        for _ in logits {
            self.file.read_exact(&mut number).map_err(|source| failed(self.bytes, source))?;
            self.row.push(f32::from_le_bytes(number));
        }
        Ok(TokenDivergence::of(&self.row, logits))
    }
}

fn failed(bytes: u64, source: io::Error) -> ReferenceError {
    ReferenceError { folder: std::env::temp_dir().display().to_string(), bytes, source }
}

/// Of one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenDivergence {
    /// Of the second distribution from the first, nats.
    pub kl: f64,
    /// Whether both think the same token likeliest.
    pub same_top: bool,
}

impl TokenDivergence {
    /// From logits; summed in f64, because terms of both signs nearly cancel.
    fn of(first: &[f32], second: &[f32]) -> Self {
        let (log_first, log_second) = (LogSum::of(first), LogSum::of(second));
        let term = |(&a, &b): (&f32, &f32)| {
            let (a, b) = (log_first.log_probability(a), log_second.log_probability(b));
            if a == f64::NEG_INFINITY { 0.0 } else { a.exp() * (a - b) }
        };
        let kl: f64 = first.iter().zip(second).map(term).sum();
        // Below nothing only by rounding.
        Self { kl: kl.max(0.0), same_top: log_first.top == log_second.top }
    }
}

/// What turns logits into log-probabilities.
struct LogSum {
    most: f64,
    log_sum: f64,
    top: usize,
}

impl LogSum {
    fn of(logits: &[f32]) -> Self {
        let higher = |best: usize, at: usize| if logits[at] > logits[best] { at } else { best };
        let top = (1..logits.len()).fold(0, higher);
        let most = logits.get(top).copied().map_or(0.0, f64::from);
        let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - most).exp()).sum();
        Self { most, log_sum: sum.ln(), top }
    }

    fn log_probability(&self, logit: f32) -> f64 {
        f64::from(logit) - self.most - self.log_sum
    }
}

/// Of a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Divergence {
    /// Mean over tokens, nats; the interval is over windows.
    pub kl: Interval,
    /// Share of tokens of which both settings think the same next one likeliest.
    pub same_top: Interval,
}

impl Divergence {
    /// From the tokens of every window.
    ///
    /// # Panics
    /// When there is no window.
    pub fn of(windows: &[Vec<TokenDivergence>]) -> Self {
        let means = |value: fn(&TokenDivergence) -> f64| {
            let mean = |window: &Vec<TokenDivergence>| {
                window.iter().map(value).sum::<f64>() / window.len().max(1) as f64
            };
            mean_interval(&windows.iter().map(mean).collect::<Vec<_>>())
        };
        Self { kl: means(|token| token.kl), same_top: means(|t| f64::from(u8::from(t.same_top))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_divergence_is_the_textbooks_and_none_from_itself() {
        // 0.5, 0.5 and 0.75, 0.25: ½·ln(2/3) + ½·ln 2.
        let (first, second) = ([0.0, 0.0], [3.0_f32.ln(), 0.0]);
        let found = TokenDivergence::of(&first, &second);
        assert!(
            (found.kl - 0.5 * (2.0_f64 / 3.0).ln() - 0.5 * 2.0_f64.ln()).abs() < 1e-7,
            "{found:?}"
        );
        let shifted = [1000.0, 1001.0, 999.0];
        let same = TokenDivergence::of(&[0.0, 1.0, -1.0], &shifted);
        assert!(same.kl < 1e-9 && same.same_top, "{same:?}");
        assert!(!TokenDivergence::of(&[0.0, 1.0], &[1.0, 0.0]).same_top);
        let never = TokenDivergence::of(&[0.0, f32::NEG_INFINITY], &[0.0, f32::NEG_INFINITY]);
        assert_eq!(never.kl, 0.0);
    }

    #[test]
    fn logits_come_back_in_order_as_often_as_asked() {
        let mut reference = Reference::start().unwrap();
        let rows = [[0.0, 1.0, 2.0], [5.0, -1.0, 0.5]];
        rows.iter().for_each(|row| reference.push(row).unwrap());
        for _ in 0..2 {
            let mut kept = reference.read().unwrap();
            let found = rows.map(|row| kept.next_divergence(&row).unwrap());
            assert_eq!(found.map(|token| token.kl), [0.0, 0.0]);
            assert!(kept.next_divergence(&[0.0]).is_err(), "there are no more");
        }
    }

    #[test]
    fn intervals_are_over_windows() {
        let token = |kl, same_top| TokenDivergence { kl, same_top };
        let windows = [vec![token(0.1, true), token(0.3, true)], vec![token(0.4, false); 2]];
        let found = Divergence::of(&windows);
        assert!((found.kl.value - 0.3).abs() < 1e-12 && (found.same_top.value - 0.5).abs() < 1e-12);
        assert!(found.kl.low < 0.2 && found.kl.high > 0.4, "{found:?}");
    }
}
