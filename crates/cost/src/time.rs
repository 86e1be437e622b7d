//! Time as a plain integer. Not a clock: whoever needs the time is given it.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds, as a moment or a span. Exact arithmetic, so equal inputs give equal schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The beginning, and the empty span.
    pub const ZERO: Self = Self(0);
    /// Later than everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// Rounded to the nearest nanosecond; negative and NaN become zero.
    pub fn from_us(us: f64) -> Self {
        Self((us * 1e3).round() as u64)
    }

    /// In microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`, or zero when that lies ahead.
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..10_000 => write!(f, "{} ns", self.0),
            10_000..10_000_000 => write!(f, "{:.1} us", self.as_us()),
            10_000_000..10_000_000_000 => write!(f, "{:.1} ms", self.as_us() / 1e3),
            _ => write!(f, "{:.1} s", self.as_s()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_never_go_below_zero_or_wrap() {
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
        assert_eq!(Nanos::NEVER + Nanos(1), Nanos::NEVER);
        assert_eq!(Nanos::from_us(-4.0), Nanos::ZERO);
        assert_eq!(Nanos::from_us(1.5), Nanos(1500));
    }

    #[test]
    fn shown_in_the_unit_people_read() {
        let shown = [9_999, 10_000, 12_345_678, 20_000_000_000].map(|n| Nanos(n).to_string());
        assert_eq!(shown, ["9999 ns", "10.0 us", "12.3 ms", "20.0 s"]);
    }
}
