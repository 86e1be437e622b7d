//! How many guessed tokens are computed in one pass, and whether a draft model is asked for another.
//! Times are arguments; nothing is measured here.
//!
//! A pass of `w` guesses gives one token and those of the guesses that are right in a row. Where
//! those of the kinds of its guesses are right with `a`, `b`, `c` … that is `1 + a + ab + abc + …`
//! tokens, in the time of a plain pass times `ratio(w)` and what a draft model took. The width with
//! the most tokens per time is taken. All are means that forget: how often guesses are right by
//! [`Kind`], and what passes take (`times`). A guess that was not computed is judged too, when all
//! before it were right: the token in its place is then known.
//!
//! A draft model is asked for one more token when what that adds to the pass is expected to give
//! more tokens per time than the pass has without: by how often its tokens are of each class, how
//! often those are right, and what it takes.
//!
//! Wrong beliefs are bounded by an account. A pass pays in the time that plain passes would have
//! taken for its tokens, and takes out what it, its draft and going back to plain passes took, as far
//! as such passes can be believed to take so long; a pass is affordable when the account covers it with
//! every guess wrong. It begins with half a token, with more beside a draft model, and a small share of
//! the time comes in. So no text can lose much more than that, and on one that repeats the first right
//! guesses, alone in their passes, pay for wider ones. Where guessing does not pay, one guess is tried
//! now and then, and again at once as long as it is right; a draft model is asked so too.

use super::draft::{Asked, FIRST_RIGHT as DRAFTED_RIGHT, Questions};
use super::guess::{Kind, Source};
use super::mean::Mean;
use super::times::Times;

pub use super::times::MOST_GUESSES;

/// Plain passes before the first guess: the first of an answer is slower than others.
const WARM_PASSES: u32 = 3;
/// After as many passes with guesses a plain one is measured.
const PLAIN_EVERY: u32 = 48;
/// Expected gain from which guesses are made.
const GAIN_LEAST: f64 = 1.02;
/// What the account begins with, in plain passes.
const FREE_PASSES: f64 = 0.5;
/// The same beside a draft model, which somebody chose: enough to ask it a few times while it is near
/// the end of the text. A model that was not asked for long has all of it to follow.
const FREE_WITH_DRAFT: f64 = 1.0;
/// Share of the time that comes in.
const LOSS_SHARE: f64 = 0.0125;
/// Most that is on the account, in plain passes: what was won long ago is not gambled away.
const CREDIT_PASSES: f64 = 3.0;
/// Belief before the first guess, that it is right and that further ones are: high, so that
/// guesses are tried, and with the weight of one pass.
const FIRST_RIGHT: f64 = 0.9;
const FURTHER_RIGHT: f64 = 0.9;
/// What remains of the weight of older passes with each new one, for shares of right guesses: they
/// change with the text.
const KEEP_SHARE: f64 = 0.75;
/// A draft model knows about the same of all texts.
const KEEP_DRAFTED: f64 = 0.95;

/// One pass, when its guesses have been judged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pass<'a> {
    /// Of the guesses there were, in their order.
    pub kinds: &'a [Kind],
    /// Guesses computed, from the first on; 0 for a plain pass.
    pub width: usize,
    /// Guesses that were right, from the first on; one more than were computed can be known.
    pub right: usize,
    /// What the pass took, in microseconds.
    pub time_us: f64,
    /// What a draft model was asked for before it.
    pub asked: Asked,
}

/// What was learned of passes, and the choice.
#[derive(Debug, Clone)]
pub struct Widths {
    /// How often guesses are right, by the number of their kind.
    shares: [Mean; Kind::COUNT],
    times: Times,
    /// What the account begins with, in plain passes.
    free_passes: f64,
    /// Time won by guesses less what they cost.
    account_us: f64,
    all_us: f64,
    /// Time since a guess that cost something was wrong, by source.
    since_wrong_us: [f64; Source::COUNT],
}

impl Widths {
    /// Before the first pass. `growth` is what each guess is believed to add to a pass, over the
    /// time of a plain one: 0 where it costs nothing, 1 where it costs as much as a token alone.
    pub fn new(growth: f64) -> Self {
        Self {
            shares: std::array::from_fn(|number| {
                Mean::believed(first_right(Kind::numbered(number)))
            }),
            times: Times::new(growth),
            free_passes: FREE_PASSES,
            account_us: 0.0,
            all_us: 0.0,
            since_wrong_us: [0.0; Source::COUNT],
        }
    }

    /// There is a draft model to ask.
    pub(super) fn use_draft(&mut self) {
        self.free_passes = FREE_WITH_DRAFT;
    }

    /// How many guesses of these `kinds` to compute, where `spent_us` went into making them.
    pub fn chosen(&self, kinds: &[Kind], spent_us: f64) -> usize {
        let Some(source) = kinds.first().map(|kind| kind.source()).filter(|_| self.is_warm())
        else {
            return 0;
        };
        let widths = 1..=kinds.len().min(MOST_GUESSES);
        let affordable =
            widths.filter(|&width| self.can_afford(self.times.extra_us(width) + spent_us));
        let none = self.rate(&[], spent_us);
        let gains = affordable.map(|width| (self.rate(&kinds[..width], spent_us) / none, width));
        match gains.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((gain, width)) if gain >= GAIN_LEAST => width,
            Some(_) => usize::from(self.may_try(source, self.times.extra_us(1))),
            None => 0,
        }
    }

    /// Whether a draft model is asked for another token after those of these `kinds`, which it was
    /// `asked` for.
    pub(super) fn asks(&self, questions: &Questions, kinds: &[Kind], asked: &Asked) -> bool {
        let width = kinds.len();
        if !self.is_warm() || width >= MOST_GUESSES {
            return false;
        }
        let (next_us, steady_us) = (questions.next_us(asked), questions.steady_us());
        let (spent_us, plain_us) = (asked.time_us, self.times.plain_us());
        let reached: f64 = kinds.iter().map(|&kind| self.share(kind)).product();
        let price = self.rate(kinds, spent_us).max(1.0);
        let step = price * (self.times.ratio(width + 1) - self.times.ratio(width));
        let worth = |(class, often): (usize, f64)| {
            often * (reached * self.share(Kind::Drafted(class)) - step).max(0.0)
        };
        let won: f64 = questions.shares().into_iter().enumerate().map(worth).sum();
        if won > GAIN_LEAST * price * steady_us / plain_us {
            return self.can_afford(self.times.extra_us(width + 1) + spent_us + next_us);
        }
        width == 0 && self.may_try(Source::Draft, steady_us) && self.can_afford(next_us)
    }

    /// Learns from a pass.
    pub fn record(&mut self, pass: &Pass<'_>) {
        let width = pass.width.min(MOST_GUESSES);
        let asked_us = pass.asked.time_us;
        let taken_us = pass.time_us + asked_us;
        self.all_us += taken_us;
        self.since_wrong_us.iter_mut().for_each(|since| *since += taken_us);
        self.learn_shares(pass);
        let counted_us = if width > 0 {
            self.times.learn_guessed(width, pass.time_us)
        } else {
            self.account_us -= self.times.learn_plain(pass.time_us);
            pass.time_us
        };
        if width > 0 || pass.asked.tokens > 0 {
            let plain_us = self.times.plain_us();
            let alone_us = if width > 0 { plain_us } else { pass.time_us };
            let right_us = pass.right.min(width) as f64 * plain_us;
            let won_us = alone_us + right_us - counted_us - asked_us;
            self.account_us = (self.account_us + won_us).min(CREDIT_PASSES * plain_us);
            if let (0, Some(kind)) = (pass.right, pass.kinds.first()) {
                self.since_wrong_us[kind.source() as usize] = 0.0;
            }
        }
    }

    /// The first wrong guess is judged, and every one before it.
    fn learn_shares(&mut self, pass: &Pass<'_>) {
        let judged = (pass.right + 1).min(pass.width + 1).min(pass.kinds.len());
        let mut counts = [(0u32, 0u32); Kind::COUNT];
        for (at, kind) in pass.kinds[..judged].iter().enumerate() {
            let (seen, right) = &mut counts[kind.number()];
            *seen += 1;
            *right += u32::from(at < pass.right);
        }
        for (number, (seen, right)) in counts.into_iter().enumerate().filter(|(_, c)| c.0 > 0) {
            let keep = match Kind::numbered(number).source() {
                Source::Lookup => KEEP_SHARE,
                Source::Draft => KEEP_DRAFTED,
            };
            self.shares[number].add(f64::from(right) / f64::from(seen), keep);
        }
    }

    /// Nothing is guessed before it is known what plain passes take, and that is seen again.
    fn is_warm(&self) -> bool {
        self.times.plain_passes() >= WARM_PASSES && self.times.since_plain() < PLAIN_EVERY
    }

    fn share(&self, kind: Kind) -> f64 {
        self.shares[kind.number()].value
    }

    /// Tokens per time over those of plain passes, with all guesses of these `kinds`.
    fn rate(&self, kinds: &[Kind], spent_us: f64) -> f64 {
        let mut reached = 1.0;
        let more = kinds.iter().map(|&kind| {
            reached *= self.share(kind);
            reached
        });
        let tokens = 1.0 + more.sum::<f64>();
        tokens / (self.times.ratio(kinds.len()) + spent_us / self.times.plain_us())
    }

    /// Whether the account covers what is lost when every guess is wrong.
    fn can_afford(&self, lost_us: f64) -> bool {
        let plain_us = self.times.plain_us();
        lost_us <= self.account_us + self.free_passes * plain_us + LOSS_SHARE * self.all_us
    }

    /// Whether it is time for a guess that is not expected to pay.
    fn may_try(&self, source: Source, cost_us: f64) -> bool {
        LOSS_SHARE * self.since_wrong_us[source as usize] >= cost_us
    }
}

/// The belief before the first guess.
fn first_right(kind: Kind) -> f64 {
    match kind {
        Kind::Matched(_) => FIRST_RIGHT,
        Kind::Continued => FURTHER_RIGHT,
        Kind::Drafted(class) => DRAFTED_RIGHT[class],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_guessed_before_plain_passes_were_seen_or_without_guesses() {
        let mut widths = Widths::new(0.0);
        let all = [Kind::Continued; MOST_GUESSES];
        for _ in 0..WARM_PASSES {
            assert_eq!(widths.chosen(&all, 0.0), 0);
            widths.record(&Pass { time_us: 1e5, ..Pass::default() });
        }
        assert_eq!(widths.chosen(&all, 0.0), MOST_GUESSES);
        assert_eq!((widths.chosen(&all[..3], 0.0), widths.chosen(&[], 0.0)), (3, 0));
    }

    #[test]
    fn a_guess_that_was_not_computed_is_judged_where_its_place_is_known() {
        let mut widths = Widths::new(0.5);
        let kinds = [Kind::Drafted(4), Kind::Drafted(3), Kind::Drafted(2)];
        let before = widths.shares;
        let pass = Pass { kinds: &kinds, width: 1, right: 1, time_us: 1e5, ..Pass::default() };
        widths.record(&pass);
        let shares = |widths: &Widths| kinds.map(|kind| widths.share(kind));
        let [first, second, third] = shares(&widths);
        assert!(first > before[kinds[0].number()].value, "right");
        assert!(second < before[kinds[1].number()].value, "wrong, and not computed");
        assert_eq!(third, before[kinds[2].number()].value, "nobody knows");
    }

    #[test]
    fn what_a_draft_took_is_taken_from_the_account_with_and_without_guesses() {
        let mut widths = Widths::new(0.5);
        let plain = Pass { time_us: 100.0, ..Pass::default() };
        (0..4).for_each(|_| widths.record(&plain));
        assert_eq!(widths.account_us, 0.0);
        let asked = Asked { tokens: 1, behind: 0, time_us: 30.0 };
        let kinds = [Kind::Drafted(4)];
        widths.record(&Pass { kinds: &kinds, asked, ..plain });
        assert_eq!(widths.account_us, -30.0);
        widths.record(&Pass { kinds: &kinds, width: 1, right: 1, time_us: 150.0, asked });
        assert_eq!(widths.account_us, -10.0);
    }
}
