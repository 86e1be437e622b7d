//! Which routed pairs of a layer are left out: those that weigh little and whose expert would have
//! to be read now (`--skip-cold`). An approximation, off by default.
//!
//! ```text
//!   a pair of token and expert is left out when
//!     its weight is below P · (the token's weights / k),   and it is not the token's strongest,
//!     the expert is in no memory and not on its way,       and no other pair of the layer keeps it
//! ```
//!
//! Where one pair keeps an expert it is read anyway, so leaving out the others would save nothing.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Parts of an even share that are told apart.
const UNITS: f64 = 1000.0;

/// Below which part of an even share (1/k of a token's weights) a pair may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct SkipCold(u16);

/// A part that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a part of an even share, above 0 and at most 1, such as 0.5")]
pub struct NotAPart;

impl SkipCold {
    /// The part: above 0, at most 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / UNITS
    }

    /// The pairs that are left out, `[tokens][slots]`, where `is_cold` says whose bytes would have to
    /// be read now; and how much that is. A token whose weights are not numbers stays whole.
    pub fn choose(
        self,
        pairs: &RoutedPairs<'_>,
        is_cold: impl Fn(u16) -> bool,
        left_out: &mut Vec<bool>,
    ) -> LeftOut {
        left_out.clear();
        for (experts, weights) in pairs.tokens() {
            let limit = self.part() as f32 * weights.iter().sum::<f32>() / weights.len() as f32;
            let strongest = strongest(weights);
            let weak = |slot: usize| slot != strongest && weights[slot] < limit;
            left_out.extend((0..experts.len()).map(|slot| weak(slot) && is_cold(experts[slot])));
        }
        keep_what_is_read(pairs.experts, left_out);
        LeftOut::of(pairs, left_out)
    }
}

/// Takes back the pairs of experts that another pair keeps.
fn keep_what_is_read(experts: &[u16], left_out: &mut [bool]) {
    let numbers = experts.iter().max().map_or(0, |&most| usize::from(most) + 1);
    let mut is_read = vec![false; numbers];
    for (&expert, left) in experts.iter().zip(&*left_out) {
        is_read[usize::from(expert)] |= !left;
    }
    for (&expert, left) in experts.iter().zip(left_out) {
        *left &= !is_read[usize::from(expert)];
    }
}

/// The slot of the highest weight; the first of equal ones.
fn strongest(weights: &[f32]) -> usize {
    let higher = |best: usize, slot: usize| if weights[slot] > weights[best] { slot } else { best };
    (1..weights.len()).fold(0, higher)
}

/// One routed layer, pair by pair.
#[derive(Debug, Clone, Copy)]
pub struct RoutedPairs<'a> {
    pub layer: u16,
    /// Experts per token, at least 1.
    pub slots: usize,
    /// `[tokens][slots]`.
    pub experts: &'a [u16],
    /// The same; not negative. Not numbers where they are not known.
    pub weights: &'a [f32],
}

impl RoutedPairs<'_> {
    /// Each token's experts and weights.
    pub fn tokens(&self) -> impl Iterator<Item = (&[u16], &[f32])> {
        self.experts.chunks_exact(self.slots).zip(self.weights.chunks_exact(self.slots))
    }
}

/// How much was left out.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LeftOut {
    /// Pairs of token and expert.
    pub pairs: u64,
    /// Their weight, in even shares: a pair of mean weight counts 1.
    pub weight: f64,
}

impl LeftOut {
    fn of(pairs: &RoutedPairs<'_>, left_out: &[bool]) -> Self {
        let mut sum = Self::default();
        for ((_, weights), left) in pairs.tokens().zip(left_out.chunks_exact(pairs.slots)) {
            let all: f32 = weights.iter().sum();
            for (weight, _) in weights.iter().zip(left).filter(|(_, left)| **left) {
                sum.pairs += 1;
                sum.weight += f64::from(weight / all) * pairs.slots as f64;
            }
        }
        sum
    }

    /// Adds another layer's.
    pub fn add(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.weight += other.weight;
    }
}

impl TryFrom<f64> for SkipCold {
    type Error = NotAPart;

    fn try_from(part: f64) -> Result<Self, NotAPart> {
        let units = (part * UNITS).round();
        if part > 0.0 && part <= 1.0 { Ok(Self(units.max(1.0) as u16)) } else { Err(NotAPart) }
    }
}

impl From<SkipCold> for f64 {
    fn from(skip: SkipCold) -> Self {
        skip.part()
    }
}

impl FromStr for SkipCold {
    type Err = NotAPart;

    fn from_str(text: &str) -> Result<Self, NotAPart> {
        text.trim().parse::<f64>().map_err(|_| NotAPart)?.try_into()
    }
}

impl fmt::Display for SkipCold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.part())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs left out of tokens with two experts each, where these experts are cold.
    fn left_out(
        part: &str,
        experts: &[u16],
        weights: &[f32],
        cold: &[u16],
    ) -> (Vec<bool>, LeftOut) {
        let pairs = RoutedPairs { layer: 0, slots: 2, experts, weights };
        let mut left = vec![true; 9];
        let skip: SkipCold = part.parse().unwrap();
        let sum = skip.choose(&pairs, |expert| cold.contains(&expert), &mut left);
        (left, sum)
    }

    #[test]
    fn a_weak_pair_of_a_cold_expert_is_left_out_and_the_strongest_stays() {
        let (left, sum) = left_out("0.5", &[3, 7], &[0.8, 0.2], &[3, 7]);
        assert_eq!(left, [false, true]);
        assert_eq!(sum.pairs, 1);
        assert!((sum.weight - 0.4).abs() < 1e-6, "{sum:?}");
        assert_eq!(left_out("0.5", &[3, 7], &[0.8, 0.2], &[3]).0, [false, false], "it is there");
        assert_eq!(left_out("0.5", &[3, 7], &[0.7, 0.3], &[3, 7]).0, [false, false], "it counts");
        assert_eq!(left_out("1", &[3, 7], &[0.3, 0.7], &[3, 7]).0, [true, false]);
        assert_eq!(left_out("1", &[3, 7], &[0.5, 0.5], &[3, 7]).0, [false, false], "an even share");
    }

    #[test]
    fn an_expert_that_one_token_needs_is_computed_for_all() {
        let (experts, weights) = ([3, 7, 7, 4, 5, 6], [0.9, 0.1, 0.9, 0.1, 0.9, 0.1]);
        let (left, sum) = left_out("0.5", &experts, &weights, &[4, 6, 7]);
        assert_eq!(left, [false, false, false, true, false, true]);
        assert_eq!(sum.pairs, 2);
    }

    #[test]
    fn weights_that_are_not_known_leave_a_token_whole() {
        let unknown = [f32::NAN; 2];
        assert_eq!(left_out("1", &[3, 7], &unknown, &[3, 7]).0, [false, false]);
        assert_eq!(left_out("1", &[3, 7], &[0.0, 0.0], &[3, 7]).0, [false, false]);
    }

    #[test]
    fn parts_are_read_or_refused() {
        for good in ["0.25", "1", "0.001", " 0.5 "] {
            let skip: SkipCold = good.parse().unwrap();
            assert_eq!(skip.to_string(), good.trim());
        }
        for wrong in ["0", "-0.5", "1.01", "NaN", "half", ""] {
            assert_eq!(wrong.parse::<SkipCold>(), Err(NotAPart), "{wrong}");
        }
    }
}
