//! Speculation: tokens that are likely to come next are computed together with the last one, and
//! those that were wrong are taken back. Says which tokens and how many; computes and measures
//! nothing.
//!
//! - [`lookup`]: which, by what followed the same few tokens before.
//! - [`width`]: how many, by what passes took and how often guesses were right.
//!
//! A pass of several tokens reads each weight once and each expert once, but brings more experts:
//! beyond RAM an extra token costs most of a token. So a wrong guess is dear there, and none is made
//! where it is not expected to pay.

pub mod lookup;
pub mod width;

pub use lookup::{Guess, Lookup};
pub use width::{MOST_GUESSES, Pass, Widths};

/// Both for one timeline.
#[derive(Debug, Clone)]
pub struct Speculation {
    lookup: Lookup,
    widths: Widths,
}

impl Speculation {
    /// Of an empty timeline; `growth` as [`Widths::new`] takes it.
    pub fn new(growth: f64) -> Self {
        Self { lookup: Lookup::default(), widths: Widths::new(growth) }
    }

    /// These tokens were computed after what is there already.
    pub fn extend(&mut self, tokens: &[i32]) {
        tokens.iter().for_each(|&token| self.lookup.push(token));
    }

    /// All but the first `tokens` are forgotten. What was learned of passes stays.
    pub fn truncate(&mut self, tokens: usize) {
        self.lookup.truncate(tokens);
    }

    /// What to compute together with `last`, which follows what is there; at most `most` tokens, and
    /// none where that does not pay.
    pub fn guess(&self, last: i32, most: usize) -> Guess {
        let mut guess = self.lookup.guess(last, most.min(MOST_GUESSES));
        guess.tokens.truncate(self.widths.chosen(guess.matched, guess.tokens.len()));
        guess
    }

    /// A pass was computed and its guesses were judged.
    pub fn record(&mut self, pass: &Pass) {
        self.widths.record(pass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_repeats_is_guessed_once_it_is_known_what_a_pass_takes() {
        let mut speculation = Speculation::new(0.5);
        speculation.extend(&[1, 2, 3, 4, 5, 1, 2, 3]);
        assert_eq!(speculation.guess(4, 8).tokens, [0; 0]);
        for _ in 0..10 {
            speculation.record(&Pass { time_us: 100.0, ..Pass::default() });
        }
        let guess = speculation.guess(4, 8);
        assert_eq!((guess.tokens, guess.matched), (vec![5], 4));
        assert_eq!(speculation.guess(4, 0).tokens, [0; 0]);
        speculation.truncate(6);
        assert_eq!(speculation.guess(9, 8).tokens, [0; 0]);
    }
}
