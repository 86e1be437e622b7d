//! Speculation: tokens that are likely to come next are computed together with the last one, and
//! those that were wrong are taken back. Says which tokens and how many; computes and measures
//! nothing.
//!
//! - [`lookup`]: which, by what followed the same few tokens before.
//! - [`draft`]: which, by a small model of the same vocabulary: how sure it is, and what it takes.
//! - [`guess`]: what both say.
//! - [`width`]: how many, by how often guesses were right and by what passes take (`times`); `mean`:
//!   means that forget.
//!
//! A pass of several tokens reads each weight once and each expert once, but brings more experts:
//! beyond RAM an extra token costs most of a token. So a wrong guess is dear there, and none is made
//! where it is not expected to pay.

pub mod draft;
pub mod guess;
pub mod lookup;
mod mean;
mod times;
pub mod width;
#[cfg(test)]
mod worlds;

pub use draft::Asked;
pub use guess::{Guess, Kind, Source};
pub use lookup::Lookup;
pub use width::{MOST_GUESSES, Pass, Widths};

use draft::Questions;
use lookup::LONGEST;

/// Both for one timeline.
#[derive(Debug, Clone)]
pub struct Speculation {
    lookup: Lookup,
    /// Where there is a draft model.
    questions: Option<Questions>,
    widths: Widths,
}

impl Speculation {
    /// Of an empty timeline; `growth` as [`Widths::new`] takes it.
    pub fn new(growth: f64) -> Self {
        Self { lookup: Lookup::default(), questions: None, widths: Widths::new(growth) }
    }

    /// From now on there is a draft model to ask.
    pub fn use_draft(&mut self) {
        self.questions = Some(Questions::new());
        self.widths.use_draft();
    }

    /// All tokens of the timeline.
    pub fn tokens(&self) -> &[i32] {
        self.lookup.tokens()
    }

    /// These tokens were computed after what is there already.
    pub fn extend(&mut self, tokens: &[i32]) {
        tokens.iter().for_each(|&token| self.lookup.push(token));
    }

    /// All but the first `tokens` are forgotten. What was learned of passes stays.
    pub fn truncate(&mut self, tokens: usize) {
        self.lookup.truncate(tokens);
    }

    /// What followed the same tokens before, and how many of it to compute together with `last`,
    /// which follows what is there; at most `most` tokens, and none where that does not pay.
    pub fn found(&self, last: i32, most: usize) -> Guess {
        let mut guess = Guess::from(self.lookup.guess(last, most.min(MOST_GUESSES)));
        guess.width = self.widths.chosen(&guess.kinds, 0.0);
        guess
    }

    /// Whether a draft model is thought of, beside what was `found`: not where a long match is
    /// expected to pay, which is right more often and costs nothing.
    pub fn thinks_of_draft(&self, found: &Guess) -> bool {
        let long = matches!(found.kinds.first(), Some(Kind::Matched(LONGEST..)));
        self.questions.is_some() && !(long && found.width > 0)
    }

    /// Whether the draft model is asked for one more token than were `drafted`, which it was
    /// `asked` for; at most `most` in all.
    pub fn asks(&self, drafted: &Guess, asked: &Asked, most: usize) -> bool {
        let questions = self.questions.as_ref().filter(|_| drafted.tokens.len() < most);
        questions.is_some_and(|questions| self.widths.asks(questions, &drafted.kinds, asked))
    }

    /// Says how many of the `drafted` tokens to compute.
    pub fn choose(&self, drafted: &mut Guess, asked: &Asked) {
        drafted.width = self.widths.chosen(&drafted.kinds, asked.time_us);
    }

    /// A draft model was asked outside of any pass: while it followed a prompt.
    pub fn learn_asked(&mut self, asked: &Asked) {
        if let Some(questions) = &mut self.questions {
            questions.learn(asked);
        }
    }

    /// A pass was computed and its guesses were judged.
    pub fn record(&mut self, pass: &Pass<'_>) {
        self.learn_asked(&pass.asked);
        let questions = self.questions.as_mut().filter(|_| pass.asked.tokens > 0);
        if let Some(questions) = questions {
            for kind in pass.kinds {
                if let Kind::Drafted(class) = kind {
                    questions.see_class(*class);
                }
            }
        }
        self.widths.record(pass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Pass<'static> = Pass {
        kinds: &[],
        width: 0,
        right: 0,
        time_us: 100.0,
        asked: Asked { tokens: 0, behind: 0, time_us: 0.0 },
    };

    #[test]
    fn a_text_that_repeats_is_guessed_once_it_is_known_what_a_pass_takes() {
        let mut speculation = Speculation::new(0.5);
        speculation.extend(&[1, 2, 3, 4, 5, 1, 2, 3]);
        assert_eq!(speculation.found(4, 8).computed(), [0; 0]);
        (0..10).for_each(|_| speculation.record(&PLAIN));
        let guess = speculation.found(4, 8);
        assert_eq!((guess.computed(), guess.kinds[0]), (&[5][..], Kind::Matched(4)));
        assert_eq!(speculation.found(4, 0).tokens, [0; 0]);
        speculation.truncate(6);
        assert_eq!(speculation.found(9, 8).tokens, [0; 0]);
        assert_eq!(speculation.tokens(), [1, 2, 3, 4, 5, 1]);
    }

    #[test]
    fn a_draft_model_is_asked_where_no_long_match_pays() {
        let mut speculation = Speculation::new(0.3);
        speculation.extend(&[1, 2, 3, 4, 5, 1, 2, 3]);
        (0..10).for_each(|_| speculation.record(&PLAIN));
        let (long, none) = (speculation.found(4, 8), speculation.found(9, 8));
        let asks = |speculation: &Speculation, drafted: &Guess, most| {
            let spent = Asked { tokens: drafted.tokens.len(), behind: 0, time_us: 0.0 };
            speculation.asks(drafted, &spent, most)
        };
        assert!(!speculation.thinks_of_draft(&none), "there is none");
        speculation.use_draft();
        speculation.learn_asked(&Asked { tokens: 1, behind: 0, time_us: 5.0 });
        assert!(speculation.thinks_of_draft(&none) && !speculation.thinks_of_draft(&long));
        let mut drafted = Guess::default();
        assert!(asks(&speculation, &drafted, 8) && !asks(&speculation, &drafted, 0));
        drafted.push(7, Kind::drafted(0.1));
        assert!(!asks(&speculation, &drafted, 8), "after an unlikely token none is asked for");
        drafted = Guess::default();
        drafted.push(7, Kind::drafted(0.99));
        speculation.choose(&mut drafted, &Asked { tokens: 1, behind: 0, time_us: 5.0 });
        assert_eq!(drafted.computed(), [7]);
    }

    #[test]
    fn a_draft_model_that_takes_longer_than_what_it_may_save_is_not_asked() {
        let mut speculation = Speculation::new(0.3);
        speculation.use_draft();
        speculation.learn_asked(&Asked { tokens: 1, behind: 0, time_us: 95.0 });
        (0..5).for_each(|_| speculation.record(&PLAIN));
        assert!(!speculation.asks(&Guess::default(), &Asked::default(), 8));
    }
}
