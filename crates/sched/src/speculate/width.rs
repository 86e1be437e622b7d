//! How many guessed tokens are computed in one pass. Times are arguments; nothing is measured here.
//!
//! A pass of `w` guesses gives one token and those of the guesses that are right in a row. With `p`
//! for the first and `q` for each further one that is `1 + p (1 + q + … + q^(w-1))` tokens, in the
//! time of a plain pass times `ratio(w)`. The width with the most tokens per time is taken. All four
//! are means that forget: `p` by the length of the match, `ratio` by width, and where a width was
//! not seen yet, by what an extra token costs in others.
//!
//! Wrong beliefs are bounded by an account. A pass pays in the time that plain passes would have
//! taken for its tokens, and takes out what it took; a pass is affordable when the account covers it
//! with every guess wrong. It begins with half a token, and a small share of the time comes in. So no
//! text can lose much more than that, and on one that repeats the first right guesses, alone in
//! their passes, pay for wider ones. Where guessing does not pay, one guess is tried now and then,
//! and again at once as long as it is right.

use super::lookup::{LENGTHS, SHORTEST};

/// Most guesses in one pass: beyond, the gain is small even where all are right.
pub const MOST_GUESSES: usize = 8;

/// Plain passes before the first guess: the first of an answer is slower than others.
const WARM_PASSES: u32 = 3;
/// After as many passes with guesses a plain one is measured.
const PLAIN_EVERY: u32 = 48;
/// Expected gain from which guesses are made.
const GAIN_LEAST: f64 = 1.02;
/// What the account begins with, in plain passes.
const FREE_PASSES: f64 = 0.5;
/// Share of the time that comes in.
const LOSS_SHARE: f64 = 0.02;
/// Most that is on the account, in plain passes: what was won long ago is not gambled away.
const CREDIT_PASSES: f64 = 8.0;
/// Belief before the first guess, that it is right and that further ones are: high, so that
/// guesses are tried, and with the weight of one pass.
const FIRST_RIGHT: f64 = 0.9;
const FURTHER_RIGHT: f64 = 0.9;
/// What remains of the weight of older passes with each new one: for shares of right guesses, which
/// change with the text, and for times.
const KEEP_SHARE: f64 = 0.75;
const KEEP_TIME: f64 = 0.9;
/// A pass longer than so many means counts as so long: something else was going on.
const OUTLIER: f64 = 4.0;

/// One pass, when its guesses have been judged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pass {
    /// Guesses computed; 0 for a plain pass.
    pub width: usize,
    /// Of [`super::Guess::matched`].
    pub matched: usize,
    /// Guesses that were right, from the first on.
    pub accepted: usize,
    /// What it took, in microseconds.
    pub time_us: f64,
}

/// What was learned of passes, and the choice.
#[derive(Debug, Clone)]
pub struct Widths {
    /// Share of first guesses that are right, by length of the match.
    first: [Mean; LENGTHS],
    /// Share of those after a right one.
    further: Mean,
    /// Time of a plain pass.
    plain_us: Mean,
    /// What each guess adds to a pass, over the time of a plain one.
    growth: Mean,
    /// Time of a pass over that of a plain one, by width, from one guess on.
    ratios: [Mean; MOST_GUESSES],
    plain_passes: u32,
    passes_since_plain: u32,
    /// Time won by guesses less what they cost.
    account_us: f64,
    all_us: f64,
    /// Time since a guess was wrong.
    since_wrong_us: f64,
}

impl Widths {
    /// Before the first pass. `growth` is what each guess is believed to add to a pass, over the
    /// time of a plain one: 0 where it costs nothing, 1 where it costs as much as a token alone.
    pub fn new(growth: f64) -> Self {
        Self {
            first: [Mean::believed(FIRST_RIGHT); LENGTHS],
            further: Mean::believed(FURTHER_RIGHT),
            plain_us: Mean::default(),
            growth: Mean::believed(growth),
            ratios: [Mean::default(); MOST_GUESSES],
            plain_passes: 0,
            passes_since_plain: 0,
            account_us: 0.0,
            all_us: 0.0,
            since_wrong_us: 0.0,
        }
    }

    /// How many of `guesses` to compute, which were found by a match of `matched` tokens.
    pub fn chosen(&self, matched: usize, guesses: usize) -> usize {
        let warm = self.plain_passes >= WARM_PASSES && self.passes_since_plain < PLAIN_EVERY;
        if !warm {
            return 0;
        }
        let affordable = (1..=guesses.min(MOST_GUESSES)).filter(|&width| self.can_afford(width));
        let gains = affordable.map(|width| (self.gain(matched, width), width));
        match gains.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((gain, width)) if gain >= GAIN_LEAST => width,
            Some(_) => usize::from(self.may_try()),
            None => 0,
        }
    }

    /// Learns from a pass.
    pub fn record(&mut self, pass: &Pass) {
        let width = pass.width.min(MOST_GUESSES);
        let accepted = pass.accepted.min(width);
        self.all_us += pass.time_us;
        self.since_wrong_us += pass.time_us;
        if width == 0 {
            self.plain_passes = self.plain_passes.saturating_add(1);
            self.passes_since_plain = 0;
            let most = if self.plain_passes > 1 { OUTLIER * self.plain_us.value } else { f64::MAX };
            self.plain_us.add(pass.time_us.min(most), KEEP_TIME);
            return;
        }
        self.passes_since_plain = self.passes_since_plain.saturating_add(1);
        self.learn_share(pass.matched, width, accepted);
        let plain_us = self.plain_us.value.max(f64::MIN_POSITIVE);
        let expected = self.ratio(width);
        let ratio = (pass.time_us / plain_us).min(OUTLIER * expected);
        self.growth.add(((ratio - 1.0) / width as f64).max(0.0), KEEP_TIME);
        self.ratios[width - 1].add(ratio, KEEP_TIME);
        let won_us = (1 + accepted) as f64 * plain_us - pass.time_us;
        self.account_us = (self.account_us + won_us).min(CREDIT_PASSES * plain_us);
        if accepted == 0 {
            self.since_wrong_us = 0.0;
        }
    }

    fn learn_share(&mut self, matched: usize, width: usize, accepted: usize) {
        self.first[length_number(matched)].add(f64::from(accepted > 0), KEEP_SHARE);
        let judged = accepted.min(width - 1);
        if judged > 0 {
            self.further.add((accepted - 1) as f64 / judged as f64, KEEP_SHARE);
        }
    }

    /// Tokens per time over those of plain passes.
    fn gain(&self, matched: usize, width: usize) -> f64 {
        let (first, further) = (self.first[length_number(matched)].value, self.further.value);
        let in_a_row: f64 = (0..width as i32).map(|at| further.powi(at)).sum();
        (1.0 + first * in_a_row) / self.ratio(width)
    }

    /// Time of a pass over that of a plain one.
    fn ratio(&self, width: usize) -> f64 {
        let seen = self.ratios[width - 1];
        let by_growth = 1.0 + self.growth.value * width as f64;
        (by_growth + seen.value * seen.weight) / (1.0 + seen.weight)
    }

    /// Whether the account covers a pass in which every guess is wrong.
    fn can_afford(&self, width: usize) -> bool {
        let plain_us = self.plain_us.value;
        let covered_us = self.account_us + FREE_PASSES * plain_us + LOSS_SHARE * self.all_us;
        (self.ratio(width) - 1.0) * plain_us <= covered_us
    }

    /// Whether it is time for a guess that is not expected to pay.
    fn may_try(&self) -> bool {
        let cost_us = (self.ratio(1) - 1.0) * self.plain_us.value;
        LOSS_SHARE * self.since_wrong_us >= cost_us
    }
}

fn length_number(matched: usize) -> usize {
    matched.saturating_sub(SHORTEST).min(LENGTHS - 1)
}

/// A mean that forgets.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    value: f64,
    /// In observations.
    weight: f64,
}

impl Mean {
    /// As if seen once.
    fn believed(value: f64) -> Self {
        Self { value, weight: 1.0 }
    }

    /// Sees `value`; `keep` of the weight of what was seen before remains.
    fn add(&mut self, value: f64, keep: f64) {
        let before = keep * self.weight;
        self.weight = before + 1.0;
        self.value += (value - self.value) / self.weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN_US: f64 = 100_000.0;

    /// A text and a machine: how often guesses are right and what they cost, by numbers that look
    /// random and are the same every time.
    struct World {
        first: f64,
        further: f64,
        growth: f64,
        /// Times vary by this share to both sides.
        noise: f64,
        state: u64,
    }

    impl World {
        fn new(first: f64, further: f64, growth: f64) -> Self {
            Self { first, further, growth, noise: 0.3, state: 7 }
        }

        /// Between 0 and 1.
        fn number(&mut self) -> f64 {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.state >> 40) as f64 / (1u64 << 24) as f64
        }

        fn pass(&mut self, width: usize) -> Pass {
            let mut accepted = 0;
            while accepted < width {
                let right = if accepted == 0 { self.first } else { self.further };
                if self.number() >= right {
                    break;
                }
                accepted += 1;
            }
            let varied = 1.0 + self.noise * (2.0 * self.number() - 1.0);
            let time_us = PLAIN_US * (1.0 + self.growth * width as f64) * varied;
            Pass { width, matched: 4, accepted, time_us }
        }

        /// Speed over that of plain passes, for `tokens` of text, as if times did not vary.
        fn speed(&mut self, widths: &mut Widths, tokens: usize) -> f64 {
            let (mut said, mut time_us) = (0, 0.0);
            while said < tokens {
                let pass = self.pass(widths.chosen(4, MOST_GUESSES));
                widths.record(&pass);
                said += 1 + pass.accepted;
                time_us += PLAIN_US * (1.0 + self.growth * pass.width as f64);
            }
            said as f64 * PLAIN_US / time_us
        }
    }

    #[test]
    fn a_text_that_repeats_is_faster() {
        for (growth, least) in [(0.3, 1.9), (0.6, 1.3), (0.7, 1.15)] {
            for believed in [0.2, 0.6, 0.9] {
                let speed = World::new(0.97, 0.99, growth).speed(&mut Widths::new(believed), 400);
                assert!(speed >= least, "{growth} {believed}: {speed}");
            }
        }
    }

    #[test]
    fn no_text_is_much_slower() {
        for growth in [0.2, 0.6, 0.9, 1.3] {
            for (first, further) in [(0.0, 0.0), (0.1, 0.5), (0.3, 0.3), (0.5, 0.8), (0.8, 0.2)] {
                for believed in [0.1, 0.6, 1.0] {
                    let mut widths = Widths::new(believed);
                    let speed = World::new(first, further, growth).speed(&mut widths, 300);
                    assert!(speed >= 0.97, "{first} {further} {growth}: {speed}");
                }
            }
        }
    }

    #[test]
    fn guesses_come_back_when_the_text_begins_to_repeat_and_go_when_it_ends() {
        let mut widths = Widths::new(0.6);
        let mut world = World::new(0.0, 0.0, 0.6);
        let before = world.speed(&mut widths, 300);
        assert!(before >= 0.97, "{before}");
        (world.first, world.further) = (0.97, 0.99);
        let again = world.speed(&mut widths, 300);
        assert!(again >= 1.2, "{again}");
        (world.first, world.further) = (0.0, 0.0);
        let ended = world.speed(&mut widths, 300);
        assert!(ended >= 0.93, "{ended}");
    }

    #[test]
    fn nothing_is_guessed_before_plain_passes_were_seen_or_without_guesses() {
        let mut widths = Widths::new(0.0);
        let plain = Pass { time_us: PLAIN_US, ..Pass::default() };
        for _ in 0..WARM_PASSES {
            assert_eq!(widths.chosen(4, MOST_GUESSES), 0);
            widths.record(&plain);
        }
        assert_eq!(widths.chosen(4, MOST_GUESSES), MOST_GUESSES);
        assert_eq!((widths.chosen(4, 3), widths.chosen(4, 0)), (3, 0));
    }

    #[test]
    fn plain_passes_are_measured_while_all_guesses_are_right() {
        let mut widths = Widths::new(0.1);
        let mut world = World::new(1.0, 1.0, 0.1);
        let mut plain = 0;
        for _ in 0..10 * PLAIN_EVERY {
            let pass = world.pass(widths.chosen(4, MOST_GUESSES));
            plain += u32::from(pass.width == 0);
            widths.record(&pass);
        }
        assert!((9..=20).contains(&plain), "{plain}");
    }

    #[test]
    fn one_long_pass_changes_little() {
        let mut widths = Widths::new(0.5);
        for time_us in [PLAIN_US, PLAIN_US, PLAIN_US, PLAIN_US, 1e3 * PLAIN_US] {
            widths.record(&Pass { time_us, ..Pass::default() });
        }
        assert!(widths.plain_us.value < 2.0 * PLAIN_US, "{:?}", widths.plain_us);
    }
}
