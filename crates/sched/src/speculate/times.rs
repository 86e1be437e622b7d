//! What passes take, by how many guesses are computed in them. Times are arguments; nothing is
//! measured here.
//!
//! ```text
//! plain  plain  plain │ two guesses │ plain   plain
//! └──── compared ─────▶ with these    │        │
//!                                     └ less ──┘  what going back took: the graph is built anew
//! ```
//!
//! A machine gets faster and slower while a text is written, by a third within seconds. So a pass
//! with guesses is compared with the last few plain passes, and not with a mean of many: else what
//! the machine did would be taken for what guesses cost, and be won or lost on the account.
//!
//! An engine builds its graph anew whenever the number of tokens changes: in the pass with guesses,
//! whose time has it, and in the plain pass that follows. What the latter takes more than the next is
//! owed by the guesses, and is no part of what plain passes take.

use super::mean::Mean;

/// Most guesses in one pass: beyond, the gain is small even where all are right.
pub const MOST_GUESSES: usize = 8;
/// What remains of the weight of older passes with each new one.
const KEEP: f64 = 0.9;
/// The same for plain passes: what varies in them by chance would be won or lost on the account.
const KEEP_PLAIN: f64 = 0.97;
/// The same for those that passes with guesses are compared with: the last two or three.
const KEEP_NEAR: f64 = 0.6;
/// The same for what going back takes, which is little beside what varies by chance.
const KEEP_BACK: f64 = 0.97;
/// Most that going back is taken for, as part of a plain pass: else something else was going on.
const MOST_BACK: f64 = 0.5;
/// A plain pass longer than so many means counts as so long, for the same reason.
const OUTLIER: f64 = 4.0;
/// The same for one with guesses, of what it was believed to take: one disturbance must not end all
/// guessing, and where it was none the belief follows.
const OUTLIER_GUESSED: f64 = 3.0;

/// Where a pass stands after one with guesses.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Since {
    /// The last pass had guesses.
    Guesses,
    /// One plain pass came since, and took so long.
    OnePlain(f64),
    More,
}

/// What was learned of passes.
#[derive(Debug, Clone)]
pub(super) struct Times {
    /// Time of a plain pass.
    plain_us: Mean,
    /// The same of the last few.
    near_us: Mean,
    /// What a plain pass takes more after one with guesses.
    back_us: Mean,
    since: Since,
    /// What each guess adds to a pass, over the time of a plain one.
    growth: Mean,
    /// Time of a pass over that of a plain one, by width, from one guess on.
    ratios: [Mean; MOST_GUESSES],
    plain_passes: u32,
    since_plain: u32,
}

impl Times {
    /// Before the first pass; `growth` as [`super::Widths::new`] takes it.
    pub(super) fn new(growth: f64) -> Self {
        Self {
            plain_us: Mean::default(),
            near_us: Mean::default(),
            back_us: Mean::default(),
            since: Since::More,
            growth: Mean::believed(growth),
            ratios: [Mean::default(); MOST_GUESSES],
            plain_passes: 0,
            since_plain: 0,
        }
    }

    /// Time of a plain pass; a little before the first.
    pub(super) fn plain_us(&self) -> f64 {
        self.plain_us.value.max(f64::MIN_POSITIVE)
    }

    /// Plain passes so far.
    pub(super) fn plain_passes(&self) -> u32 {
        self.plain_passes
    }

    /// Passes with guesses since the last plain one.
    pub(super) fn since_plain(&self) -> u32 {
        self.since_plain
    }

    /// Time of a pass over that of a plain one.
    pub(super) fn ratio(&self, width: usize) -> f64 {
        let Some(at) = width.checked_sub(1) else { return 1.0 };
        let seen = self.ratios[at];
        let by_growth = 1.0 + self.growth.value * width as f64;
        (by_growth + seen.value * seen.weight) / (1.0 + seen.weight)
    }

    /// What so many guesses add to a pass.
    pub(super) fn extra_us(&self, width: usize) -> f64 {
        (self.ratio(width) - 1.0) * self.plain_us()
    }

    /// Learns from a plain pass; what of it is owed by guesses before it.
    pub(super) fn learn_plain(&mut self, time_us: f64) -> f64 {
        let owed_us = if self.since == Since::Guesses { self.back_us.value.max(0.0) } else { 0.0 };
        if let Since::OnePlain(first_us) = self.since {
            let most_us = MOST_BACK * time_us;
            self.back_us.add((first_us - time_us).clamp(-most_us, most_us), KEEP_BACK);
        }
        self.since = match self.since {
            Since::Guesses => Since::OnePlain(time_us),
            _ => Since::More,
        };
        self.plain_passes = self.plain_passes.saturating_add(1);
        self.since_plain = 0;
        let most_us = if self.plain_passes > 1 { OUTLIER * self.plain_us() } else { f64::MAX };
        let alone_us = (time_us - owed_us).clamp(0.0, most_us);
        self.plain_us.add(alone_us, KEEP_PLAIN);
        self.near_us.add(alone_us, KEEP_NEAR);
        owed_us
    }

    /// Learns from a pass with so many guesses, one at least; what it counts as.
    pub(super) fn learn_guessed(&mut self, width: usize, time_us: f64) -> f64 {
        self.since = Since::Guesses;
        self.since_plain = self.since_plain.saturating_add(1);
        let near_us = self.near_us.value.max(f64::MIN_POSITIVE);
        let ratio = (time_us / near_us).min(OUTLIER_GUESSED * self.ratio(width));
        self.growth.add(((ratio - 1.0) / width as f64).max(0.0), KEEP);
        self.ratios[width - 1].add(ratio, KEEP);
        ratio * near_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(plain_us: &[f64]) -> Times {
        let mut times = Times::new(0.5);
        plain_us.iter().for_each(|&time_us| assert_eq!(times.learn_plain(time_us), 0.0));
        times
    }

    #[test]
    fn one_long_pass_changes_little() {
        let times = after(&[1e5, 1e5, 1e5, 1e5, 1e8]);
        assert!(times.plain_us() < 2e5, "{times:?}");
    }

    #[test]
    fn a_pass_with_guesses_is_compared_with_those_just_before() {
        let mut times = after(&[100.0; 40]);
        for _ in 0..6 {
            times.learn_plain(150.0);
        }
        (0..20).for_each(|_| assert_eq!(times.learn_guessed(1, 240.0).round(), 240.0));
        assert!((times.ratio(1) - 1.6).abs() < 0.07, "{times:?}");
    }

    #[test]
    fn a_disturbed_pass_counts_as_three_times_what_it_was_believed_to_take() {
        let mut times = after(&[100.0; 5]);
        assert_eq!(times.learn_guessed(1, 1e9), 450.0);
        for _ in 0..8 {
            times.learn_guessed(3, 700.0);
        }
        assert!((times.ratio(3) - 7.0).abs() < 0.5, "what stays so long is believed: {times:?}");
    }

    #[test]
    fn what_going_back_takes_is_owed_by_the_guesses() {
        let mut times = after(&[100.0; 5]);
        let mut owed_us = 0.0;
        for _ in 0..50 {
            times.learn_guessed(1, 160.0);
            owed_us = times.learn_plain(120.0);
            assert_eq!(times.learn_plain(100.0), 0.0, "by the first only");
        }
        assert!((owed_us - 20.0).abs() < 1e-6 && times.plain_us() < 103.0, "{owed_us} {times:?}");
    }

    #[test]
    fn a_pass_disturbed_by_others_is_owed_in_part() {
        let mut times = after(&[100.0; 5]);
        times.learn_guessed(1, 160.0);
        times.learn_plain(1e9);
        times.learn_plain(100.0);
        times.learn_guessed(1, 160.0);
        assert_eq!(times.learn_plain(100.0), 50.0);
    }
}
