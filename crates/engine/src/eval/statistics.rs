//! Intervals for evaluations: means over chunks, proportions, paired differences. Pure
//! arithmetic on numbers somebody measured; all intervals are two-sided at 95 %.

use serde::Serialize;

/// 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// An estimate and where the truth lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// The same through a rising function: mean log-likelihood to perplexity.
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { value: rising(self.value), low: rising(self.low), high: rising(self.high) }
    }

    /// Whether `value` is inside.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Mean of independent samples, with Student's t. One sample says nothing about its
/// spread: the interval is infinite then.
///
/// # Panics
/// When there is no sample.
pub fn mean_interval(samples: &[f64]) -> Interval {
    assert!(!samples.is_empty(), "a mean needs a sample");
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    if samples.len() == 1 {
        return Interval { value: mean, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let half = student_t(samples.len() - 1) * error;
    Interval { value: mean, low: mean - half, high: mean + half }
}

/// Wilson's score interval of `right` out of `all`: inside [0, 1] even at the ends.
///
/// # Panics
/// When nothing was counted or more than all were right.
pub fn wilson(right: u64, all: u64) -> Interval {
    assert!(all > 0 && right <= all, "{right} of {all}");
    let (count, share) = (all as f64, right as f64 / all as f64);
    let scale = 1.0 + Z * Z / count;
    let centre = (share + Z * Z / (2.0 * count)) / scale;
    let spread = share * (1.0 - share) / count + Z * Z / (4.0 * count * count);
    let half = Z * spread.sqrt() / scale;
    Interval { value: share, low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
}

/// The same questions answered twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PairedCounts {
    /// Right both times.
    pub both: u64,
    /// Right the first time only.
    pub first_only: u64,
    /// Right the second time only.
    pub second_only: u64,
    /// Wrong both times.
    pub neither: u64,
}

impl PairedCounts {
    /// Counts pairs of (right first, right second).
    pub fn of(pairs: impl IntoIterator<Item = (bool, bool)>) -> Self {
        let mut counts = Self::default();
        for pair in pairs {
            let cell = match pair {
                (true, true) => &mut counts.both,
                (true, false) => &mut counts.first_only,
                (false, true) => &mut counts.second_only,
                (false, false) => &mut counts.neither,
            };
            *cell += 1;
        }
        counts
    }

    /// Second accuracy minus first. The interval adds half an item to each cell
    /// (Agresti and Min 2005), so that no disagreement does not mean certainty.
    pub fn difference(&self) -> Interval {
        let all = (self.both + self.first_only + self.second_only + self.neither) as f64;
        let (gained, lost) = (self.second_only as f64, self.first_only as f64);
        let value = (gained - lost) / all.max(1.0);
        let (all, gained, lost) = (all + 2.0, gained + 0.5, lost + 0.5);
        let centre = (gained - lost) / all;
        let half = Z * ((gained + lost) - (gained - lost).powi(2) / all).sqrt() / all;
        Interval { value, low: (centre - half).max(-1.0), high: (centre + half).min(1.0) }
    }
}

/// 97.5 % point of Student's t: exact up to three degrees of freedom, above that
/// by Cornish and Fisher's expansion (within 0.5 %).
fn student_t(degrees: usize) -> f64 {
    match degrees {
        1 => 12.706_204_736,
        2 => 4.302_652_730,
        3 => 3.182_446_305,
        _ => {
            let (n, z2) = (degrees as f64, Z * Z);
            let first = Z * (z2 + 1.0) / 4.0;
            let second = Z * (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / 96.0;
            let third = Z * (3.0 * z2 * z2 * z2 + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) / 384.0;
            Z + first / n + second / (n * n) + third / (n * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found} is not {expected} ± {within}");
    }

    #[test]
    fn students_t_is_the_tables() {
        let table = [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)];
        for (degrees, expected) in table {
            close(student_t(degrees), expected, 0.005 * expected);
        }
        close(student_t(100_000), Z, 1e-4);
    }

    #[test]
    fn a_mean_has_its_error() {
        // Mean 3, standard error √0.5: 3 ± 2.776·√0.5.
        let found = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        close(found.value, 3.0, 1e-12);
        close(found.high, 3.0 + 2.776 * 0.5_f64.sqrt(), 0.01);
        close(found.low, 6.0 - found.high, 1e-12);
        assert_eq!(mean_interval(&[2.0]).high, f64::INFINITY);
        assert!(found.map(f64::exp).holds(3.0_f64.exp()));
    }

    #[test]
    fn wilsons_interval_is_the_textbooks() {
        // Newcombe 1998, table I: 81 of 263 gives 0.2553–0.3662; 0 of 20 gives 0–0.1611.
        let found = wilson(81, 263);
        close(found.low, 0.2553, 5e-5);
        close(found.high, 0.3662, 5e-5);
        let none = wilson(0, 20);
        close(none.low, 0.0, 1e-12);
        close(none.high, 0.1611, 5e-5);
    }

    #[test]
    fn pairs_count_only_where_they_differ() {
        let pairs = [(true, true), (true, false), (false, true), (false, true), (false, false)];
        let counts = PairedCounts::of(pairs);
        assert_eq!(counts, PairedCounts { both: 1, first_only: 1, second_only: 2, neither: 1 });
        close(counts.difference().value, 0.2, 1e-12);
        // McNemar's example of Agresti and Min: b = 150, c = 86 of 1600, 0.040 ± 0.019.
        let survey = PairedCounts { both: 794, first_only: 150, second_only: 86, neither: 570 };
        let found = survey.difference();
        close(found.value, -0.04, 1e-12);
        close(found.low, -0.0587, 5e-4);
        close(found.high, -0.0212, 5e-4);
        let same = PairedCounts { both: 50, neither: 50, ..PairedCounts::default() }.difference();
        assert!(same.value == 0.0 && same.low < 0.0 && same.high > 0.0, "{same:?}");
    }
}
