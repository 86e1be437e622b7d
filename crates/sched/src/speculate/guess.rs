//! What may come next, whoever says so, and what is known of each of its tokens before they are
//! computed. Chooses nothing.

use super::draft::{self, CLASSES};
use super::lookup::{Found, LENGTHS, SHORTEST};

/// Who guesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// What followed the same tokens before.
    Lookup,
    /// A small model of the same vocabulary.
    Draft,
}

impl Source {
    /// How many there are.
    pub(super) const COUNT: usize = 2;
}

/// Guessed tokens of one kind are believed to be right equally often, when those before them are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first one after so many tokens that were the same elsewhere.
    Matched(usize),
    /// One that follows such a guess.
    Continued,
    /// A draft model's, by how likely that held it: a class of [`draft::class_of`].
    Drafted(usize),
}

impl Kind {
    /// How many there are.
    pub(super) const COUNT: usize = LENGTHS + 1 + CLASSES;

    /// Of a draft model that gives the token this probability.
    pub fn drafted(probability: f32) -> Self {
        Self::Drafted(draft::class_of(probability))
    }

    /// The kind with this number, below [`Kind::COUNT`].
    pub(super) fn numbered(number: usize) -> Self {
        match number {
            matched if matched < LENGTHS => Self::Matched(SHORTEST + matched),
            LENGTHS => Self::Continued,
            drafted => Self::Drafted(drafted - LENGTHS - 1),
        }
    }

    pub(super) fn number(self) -> usize {
        match self {
            Self::Matched(tokens) => tokens.saturating_sub(SHORTEST).min(LENGTHS - 1),
            Self::Continued => LENGTHS,
            Self::Drafted(class) => LENGTHS + 1 + class.min(CLASSES - 1),
        }
    }

    /// Who makes such guesses.
    pub fn source(self) -> Source {
        match self {
            Self::Matched(_) | Self::Continued => Source::Lookup,
            Self::Drafted(_) => Source::Draft,
        }
    }
}

/// What may come next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guess {
    /// In their order; empty where nothing is known.
    pub tokens: Vec<i32>,
    /// Of each.
    pub kinds: Vec<Kind>,
    /// How many of them, from the first on, are computed.
    pub width: usize,
}

impl Guess {
    /// Adds a token at the end; none is computed yet.
    pub fn push(&mut self, token: i32, kind: Kind) {
        self.tokens.push(token);
        self.kinds.push(kind);
    }

    /// Those that are computed.
    pub fn computed(&self) -> &[i32] {
        &self.tokens[..self.width]
    }

    /// Who made it; `None` where it is empty.
    pub fn source(&self) -> Option<Source> {
        self.kinds.first().map(|kind| kind.source())
    }
}

impl From<Found> for Guess {
    fn from(found: Found) -> Self {
        let kind = |at| if at == 0 { Kind::Matched(found.matched) } else { Kind::Continued };
        Self { kinds: (0..found.tokens.len()).map(kind).collect(), tokens: found.tokens, width: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_their_numbers_are_one_to_one() {
        for number in 0..Kind::COUNT {
            assert_eq!(Kind::numbered(number).number(), number);
        }
        assert_eq!(Kind::Matched(99).number(), Kind::Matched(SHORTEST + LENGTHS - 1).number());
        assert_eq!(Kind::drafted(0.99).source(), Source::Draft);
    }
}
