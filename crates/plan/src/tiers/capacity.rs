//! N2: a few capacities for all experts of a layer, from their expected loads.

use motley_profile::profile::shares;

/// Rows come in multiples of this; narrower ones waste the device.
pub const ROW_MULTIPLE: u32 = 16;

/// How capacities are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierRule {
    /// Tokens of a prefill chunk, B.
    pub chunk_tokens: u32,
    /// Experts per token, k.
    pub used: u32,
    /// Most different capacities.
    pub max_tiers: usize,
    /// Rows given per row expected: above 1 drops or spills less and pads more.
    pub headroom: f64,
}

impl TierRule {
    /// Three tiers without headroom.
    pub fn new(chunk_tokens: u32, used: u32) -> Self {
        Self { chunk_tokens, used, max_tiers: 3, headroom: 1.0 }
    }

    /// Base capacity `C = B·k/E`: what each of `experts` gets when routing is even.
    pub fn base(&self, experts: usize) -> f64 {
        f64::from(self.chunk_tokens) * f64::from(self.used) / experts.max(1) as f64
    }
}

/// The capacities of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerTiers {
    /// The capacities there are, largest first.
    pub tiers: Vec<u32>,
    /// Rows of each expert, one of `tiers`.
    pub capacity: Vec<u32>,
}

/// What a chunk's routing makes of capacities.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Used {
    /// (Token, expert) pairs routed.
    pub pairs: u64,
    /// Pairs beyond an expert's capacity: dropped, or spilled to another path (N3).
    pub over: u64,
    /// Rows of zeros that are computed.
    pub padding: u64,
    /// Rows computed in all.
    pub rows: u64,
}

impl Used {
    /// Pairs over capacity over all pairs (N8).
    pub fn drop_rate(&self) -> f64 {
        self.over as f64 / self.pairs.max(1) as f64
    }

    /// Padding over all rows computed (N8).
    pub fn padding_rate(&self) -> f64 {
        self.padding as f64 / self.rows.max(1) as f64
    }

    /// Both chunks together.
    pub fn and(self, other: Self) -> Self {
        Self {
            pairs: self.pairs + other.pairs,
            over: self.over + other.over,
            padding: self.padding + other.padding,
            rows: self.rows + other.rows,
        }
    }
}

impl LayerTiers {
    /// Every expert in the smallest tier that holds its expected load, `τ(e)`. Of all choices of
    /// at most `max_tiers` capacities that hold every expected load, the one with fewest rows.
    pub fn of(counts: &[u64], rule: &TierRule) -> Self {
        let pairs = f64::from(rule.chunk_tokens) * f64::from(rule.used) * rule.headroom;
        // No expert gets more than every token of the chunk.
        let most = round_up(f64::from(rule.chunk_tokens));
        let rows: Vec<u32> =
            shares(counts).iter().map(|share| round_up(share * pairs).min(most)).collect();
        let tiers = fewest_rows(&rows, rule.max_tiers.max(1));
        let fit = |rows: &u32| tiers.iter().copied().filter(|tier| tier >= rows).min();
        let capacity = rows.iter().map(|rows| fit(rows).unwrap_or(most)).collect();
        Self { tiers, capacity }
    }

    /// One capacity for all: the busiest expert's (the source's padding baseline).
    pub fn uniform(counts: &[u64], rule: &TierRule) -> Self {
        Self::of(counts, &TierRule { max_tiers: 1, ..*rule })
    }

    /// Rows computed for every chunk, padding included.
    pub fn rows(&self) -> u64 {
        self.capacity.iter().map(|rows| u64::from(*rows)).sum()
    }

    /// What routing with these `loads` (tokens per expert of one chunk) makes of them.
    pub fn used(&self, loads: &[u32]) -> Used {
        let pairs = self.capacity.iter().zip(loads);
        let over = pairs.clone().map(|(rows, load)| u64::from(load.saturating_sub(*rows)));
        let padding = pairs.map(|(rows, load)| u64::from(rows.saturating_sub(*load)));
        Used {
            pairs: loads.iter().map(|load| u64::from(*load)).sum(),
            over: over.sum(),
            padding: padding.sum(),
            rows: self.rows(),
        }
    }
}

fn round_up(rows: f64) -> u32 {
    (rows.ceil() as u32).max(1).next_multiple_of(ROW_MULTIPLE)
}

/// At most `tiers` of the values, the largest among them, so that rounding every value up to one
/// of them adds least. Values are sorted and cut into runs; dynamic programming over the cuts.
fn fewest_rows(values: &[u32], tiers: usize) -> Vec<u32> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let distinct: Vec<u32> = {
        let mut d = sorted.clone();
        d.dedup();
        d
    };
    // upto[i]: how many values are at most distinct[i].
    let upto: Vec<u64> =
        distinct.iter().map(|v| sorted.partition_point(|s| s <= v) as u64).collect();
    let count = distinct.len();
    // best[i]: least rows for the values up to distinct[i], whose last tier is distinct[i].
    let mut best: Vec<u64> = (0..count).map(|i| upto[i] * u64::from(distinct[i])).collect();
    let mut chosen: Vec<Vec<u32>> = distinct.iter().map(|v| vec![*v]).collect();
    for _ in 1..tiers {
        let (before, before_chosen) = (best.clone(), chosen.clone());
        for i in 0..count {
            for j in 0..i {
                let rows = before[j] + (upto[i] - upto[j]) * u64::from(distinct[i]);
                if rows < best[i] {
                    best[i] = rows;
                    chosen[i] = before_chosen[j].clone();
                    chosen[i].push(distinct[i]);
                }
            }
        }
    }
    let mut found = chosen.pop().unwrap_or_default();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_busiest_gets_r_times_the_base() {
        // r = 2 over 8 experts, B = 256, k = 1: the source's example gives 64 rows.
        let counts = [64, 32, 32, 32, 32, 32, 16, 16];
        let tiers = LayerTiers::of(&counts, &TierRule::new(256, 1));
        assert_eq!(TierRule::new(256, 1).base(8), 32.0);
        assert_eq!(tiers.tiers, [64, 32, 16]);
        assert_eq!(tiers.capacity, [64, 32, 32, 32, 32, 32, 16, 16]);
        assert_eq!(LayerTiers::uniform(&counts, &TierRule::new(256, 1)).capacity, [64; 8]);
    }

    #[test]
    fn rates_count_both_sides() {
        let tiers = LayerTiers { tiers: vec![32, 16], capacity: vec![32, 16] };
        let used = tiers.used(&[40, 8]);
        assert_eq!((used.over, used.padding, used.rows), (8, 8, 48));
        assert_eq!(used.drop_rate(), 8.0 / 48.0);
        assert_eq!(used.padding_rate(), 8.0 / 48.0);
    }

    proptest! {
        #[test]
        fn tiers_hold_what_is_expected_and_never_pad_more_than_one_tier(
            counts in prop::collection::vec(0u64..1000, 1..64),
            chunk in 1u32..2048,
            used in 1u32..9,
            max_tiers in 1usize..5,
        ) {
            let rule = TierRule { max_tiers, ..TierRule::new(chunk, used) };
            let found = LayerTiers::of(&counts, &rule);
            prop_assert!(found.tiers.len() <= max_tiers);
            prop_assert!(found.tiers.is_sorted_by(|a, b| a > b));
            prop_assert!(found.capacity.iter().all(|c| found.tiers.contains(c) && c % 16 == 0));
            let expected: Vec<u32> = motley_profile::profile::shares(&counts).iter()
                .map(|s| ((s * f64::from(chunk * used)) as u32).min(chunk)).collect();
            prop_assert_eq!(found.used(&expected).over, 0);
            prop_assert!(found.rows() <= LayerTiers::uniform(&counts, &rule).rows());
        }
    }
}
