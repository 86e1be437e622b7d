//! N3: what happens to tokens past an expert's capacity. Sorts pairs; computes none.

/// One (token, slot) pair routed to an expert.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Token in the chunk.
    pub token: u32,
    /// Which of the token's k choices.
    pub slot: u8,
    pub expert: u16,
    /// What counts when something has to go: router weight, or the norm of the attention output.
    pub saliency: f32,
}

/// The policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// Drop the least salient pairs past the capacity.
    Prune,
    /// Hand them to another path, so that nothing is lost.
    Spill,
}

/// Where the pairs of one chunk go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capped {
    /// Within capacity, grouped by expert, in token order.
    pub kept: Vec<Pair>,
    /// Dropped ([`Overflow::Prune`]).
    pub pruned: Vec<Pair>,
    /// For the other path ([`Overflow::Spill`]).
    pub spilled: Vec<Pair>,
    /// Rows of zeros that fill every used expert up to its capacity.
    pub padding_rows: u64,
}

impl Capped {
    /// Dropped pairs over all pairs (N8).
    pub fn drop_rate(&self) -> f64 {
        let all = self.kept.len() + self.pruned.len() + self.spilled.len();
        self.pruned.len() as f64 / all.max(1) as f64
    }

    /// Padding over all rows the static graph computes (N8).
    pub fn padding_rate(&self) -> f64 {
        let rows = self.kept.len() as u64 + self.padding_rows;
        self.padding_rows as f64 / rows.max(1) as f64
    }
}

/// Applies `capacity[expert]` rows to each expert's pairs.
///
/// # Panics
/// When a pair names an expert without a capacity.
pub fn cap(pairs: &[Pair], capacity: &[u32], overflow: Overflow) -> Capped {
    let mut sorted = pairs.to_vec();
    // Most salient first within an expert; equal ones in token order, so results repeat.
    sorted.sort_by(|a, b| {
        let by_saliency = b.saliency.total_cmp(&a.saliency);
        (a.expert.cmp(&b.expert)).then(by_saliency).then((a.token, a.slot).cmp(&(b.token, b.slot)))
    });
    let mut capped = Capped::default();
    for of_expert in sorted.chunk_by_mut(|a, b| a.expert == b.expert) {
        let rows = capacity[usize::from(of_expert[0].expert)] as usize;
        let (within, over) = of_expert.split_at_mut(rows.min(of_expert.len()));
        within.sort_by_key(|pair| (pair.token, pair.slot));
        capped.padding_rows += (rows - within.len()) as u64;
        capped.kept.extend_from_slice(within);
        match overflow {
            Overflow::Prune => capped.pruned.extend_from_slice(over),
            Overflow::Spill => capped.spilled.extend_from_slice(over),
        }
    }
    capped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair(token: u32, expert: u16, saliency: f32) -> Pair {
        Pair { token, slot: 0, expert, saliency }
    }

    #[test]
    fn the_least_salient_goes_and_the_rest_is_padded() {
        let pairs = [pair(0, 0, 0.2), pair(1, 0, 0.9), pair(2, 0, 0.5), pair(3, 1, 0.1)];
        let capped = cap(&pairs, &[2, 4], Overflow::Prune);
        assert_eq!(capped.kept, [pair(1, 0, 0.9), pair(2, 0, 0.5), pair(3, 1, 0.1)]);
        assert_eq!(capped.pruned, [pair(0, 0, 0.2)]);
        assert_eq!((capped.padding_rows, capped.drop_rate()), (3, 0.25));
        assert_eq!(capped.padding_rate(), 0.5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn spilling_loses_nothing(
            routed in prop::collection::vec((0u16..8, 0.0..1.0f32), 0..200),
            capacity in prop::collection::vec(0u32..40, 8),
        ) {
            let pairs: Vec<_> = routed.iter().enumerate()
                .map(|(token, &(expert, saliency))| pair(token as u32, expert, saliency))
                .collect();
            let capped = cap(&pairs, &capacity, Overflow::Spill);
            prop_assert_eq!(capped.kept.len() + capped.spilled.len(), pairs.len());
            prop_assert_eq!(capped.drop_rate(), 0.0);
            for expert in 0..8u16 {
                let count = capped.kept.iter().filter(|p| p.expert == expert).count();
                prop_assert!(count <= capacity[usize::from(expert)] as usize);
                let least = capped.kept.iter().filter(|p| p.expert == expert)
                    .map(|p| p.saliency).fold(f32::INFINITY, f32::min);
                let over = capped.spilled.iter().filter(|p| p.expert == expert);
                prop_assert!(over.map(|p| p.saliency).all(|s| s <= least || count == 0));
            }
        }
    }
}
