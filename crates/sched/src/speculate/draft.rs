//! Tokens of a draft model: how likely it held them, and what asking it takes. The model itself is
//! somebody else's; times are arguments.
//!
//! It is asked for one token after the other, and says with each how likely that is. Most of what a
//! small model knows, it knows that it knows: so tokens are told apart by that, and it is asked for
//! another only as long as one is expected to pay.

use super::mean::Mean;

/// Classes of probabilities.
pub const CLASSES: usize = 5;
/// Where one ends and the next begins.
const BOUNDS: [f32; CLASSES - 1] = [0.4, 0.6, 0.8, 0.95];
/// Share of right guesses in each, before the first was judged.
pub(super) const FIRST_RIGHT: [f64; CLASSES] = [0.3, 0.5, 0.7, 0.85, 0.95];

/// What remains of the weight of older tokens with each new one.
const KEEP: f64 = 0.95;
/// The same for times.
const KEEP_TIME: f64 = 0.9;
/// A question that took longer than so many means counts as so long: something else was going on.
const OUTLIER: f64 = 4.0;
/// With more tokens to compute first than this, a question says what such tokens take.
const FEW_BEHIND: usize = 2;

/// The class of a token that a draft model gives this `probability`.
pub fn class_of(probability: f32) -> usize {
    BOUNDS.iter().filter(|&&bound| probability >= bound).count()
}

/// What a draft model was asked for at once.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Asked {
    /// Tokens it gave.
    pub tokens: usize,
    /// Tokens of the text that it had to compute first, beside the last.
    pub behind: usize,
    /// What all of it took, in microseconds.
    pub time_us: f64,
}

/// What was learned of a draft model's questions.
#[derive(Debug, Clone)]
pub(super) struct Questions {
    /// Time of a token, when all before are computed.
    token_us: Mean,
    /// Time of a token that only has to be computed, beside others.
    behind_us: Mean,
    /// Share of each class among tokens.
    classes: [Mean; CLASSES],
}

impl Questions {
    pub(super) fn new() -> Self {
        let even = Mean::believed(1.0 / CLASSES as f64);
        Self { token_us: Mean::default(), behind_us: Mean::default(), classes: [even; CLASSES] }
    }

    /// What the next token takes, after `asked`.
    pub(super) fn next_us(&self, asked: &Asked) -> f64 {
        let behind = if asked.tokens == 0 { asked.behind } else { 0 };
        self.token_us.value + self.behind_us.value * behind as f64
    }

    /// What a token takes that is asked for after every one before it. What was not followed is left
    /// out: it is owed once, by whichever question comes next.
    pub(super) fn steady_us(&self) -> f64 {
        self.token_us.value + self.behind_us.value
    }

    /// How often a token is of each class.
    pub(super) fn shares(&self) -> [f64; CLASSES] {
        self.classes.map(|share| share.value)
    }

    /// A token of this class was given.
    pub(super) fn see_class(&mut self, class: usize) {
        for (at, share) in self.classes.iter_mut().enumerate() {
            share.add(f64::from(at == class), KEEP);
        }
    }

    /// Learns what `asked` took.
    pub(super) fn learn(&mut self, asked: &Asked) {
        let own_us = self.token_us.value * asked.tokens as f64;
        if asked.behind > FEW_BEHIND {
            let each_us = (asked.time_us - own_us).max(0.0) / asked.behind as f64;
            self.behind_us.add(each_us, KEEP_TIME);
        } else if asked.tokens > 0 {
            let each_us = asked.time_us / asked.tokens as f64;
            let known = self.token_us.weight > 0.0;
            let most_us = if known { OUTLIER * self.token_us.value } else { f64::MAX };
            self.token_us.add(each_us.min(most_us), KEEP_TIME);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likelier_tokens_are_of_higher_classes() {
        let classes = [0.0, 0.39, 0.4, 0.7, 0.8, 0.95, 1.0, f32::NAN].map(class_of);
        assert_eq!(classes, [0, 0, 1, 2, 3, 4, 4, 0]);
    }

    #[test]
    fn what_was_not_followed_is_paid_with_the_first_token_only() {
        let mut questions = Questions::new();
        questions.learn(&Asked { tokens: 0, behind: 100, time_us: 2000.0 });
        questions.learn(&Asked { tokens: 1, behind: 0, time_us: 500.0 });
        let behind = |tokens, behind| questions.next_us(&Asked { tokens, behind, time_us: 0.0 });
        assert_eq!((behind(0, 0), behind(0, 10), behind(1, 10)), (500.0, 700.0, 500.0));
        let mut slower = questions.clone();
        slower.learn(&Asked { tokens: 2, behind: 50, time_us: 5000.0 });
        assert!(slower.next_us(&Asked { behind: 10, ..Asked::default() }) > 700.0);
        slower.learn(&Asked { tokens: 1, behind: 1, time_us: 1e9 });
        assert!(slower.token_us.value <= 2000.0, "{slower:?}");
    }

    #[test]
    fn shares_of_classes_follow_what_is_seen() {
        let mut questions = Questions::new();
        (0..200).for_each(|at| questions.see_class(if at % 4 == 0 { 0 } else { 4 }));
        let shares = questions.shares();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        assert!(shares[4] > 0.65 && shares[0] > 0.15 && shares[2] < 0.01, "{shares:?}");
    }
}
