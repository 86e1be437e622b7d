//! Which machine computes the rows of each expert (W9, W10): rows go only to a worker that has the
//! expert, and where several keep it, to the one that would be done first. What nobody keeps stays at
//! home.

use std::ops::Range;

/// Bits of one word of a set.
const WORD: usize = u64::BITS as usize;

/// Experts of any layers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpertSet {
    /// By layer, one bit for each expert; shorter where none follow.
    layers: Vec<Vec<u64>>,
}

impl ExpertSet {
    /// The same `experts` of each of `layers`.
    pub fn of_layers(layers: impl IntoIterator<Item = usize>, experts: Range<u16>) -> Self {
        let mut set = Self::default();
        for layer in layers {
            experts.clone().for_each(|expert| set.insert(layer, expert));
        }
        set
    }

    /// Adds one.
    pub fn insert(&mut self, layer: usize, expert: u16) {
        let (word, bit) = (usize::from(expert) / WORD, usize::from(expert) % WORD);
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        let words = &mut self.layers[layer];
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << bit;
    }

    /// Whether it is in.
    pub fn contains(&self, layer: usize, expert: u16) -> bool {
        let (word, bit) = (usize::from(expert) / WORD, usize::from(expert) % WORD);
        let word = self.layers.get(layer).and_then(|words| words.get(word));
        word.is_some_and(|word| word >> bit & 1 == 1)
    }

    /// All that are in, as runs of neighbours of one layer.
    pub fn runs(&self) -> Vec<(u16, Range<u16>)> {
        let mut runs: Vec<(u16, Range<u16>)> = Vec::new();
        for (layer, words) in (0..).zip(&self.layers) {
            let experts = 0..(words.len() * WORD) as u16;
            for expert in experts.filter(|&expert| self.contains(layer.into(), expert)) {
                match runs.last_mut() {
                    Some((of, run)) if *of == layer && run.end == expert => run.end += 1,
                    _ => runs.push((layer, expert..expert + 1)),
                }
            }
        }
        runs
    }

    /// How many are in.
    pub fn count(&self) -> u32 {
        self.layers.iter().flatten().map(|word| word.count_ones()).sum()
    }
}

/// What a worker computes, and whether it can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Those it can compute, from its disk if need be.
    pub experts: ExpertSet,
    /// Of these, the ones that are its own; the others it computes when their owner is lost.
    pub keeps: ExpertSet,
    /// Whether it answers.
    pub answers: bool,
}

impl Shard {
    /// One whose experts are all its own, and which answers.
    pub fn keeping_all(experts: ExpertSet) -> Self {
        Self { keeps: experts.clone(), experts, answers: true }
    }
}

/// A worker for each of `experts`, to which `tokens` rows each are routed; `None` stays at home. The
/// largest are given away first, each to whoever has the fewest rows then (the greedy packing of
/// EPLB): of those that keep the expert, and where they are lost, of all that can compute it.
pub fn share_out(
    layer: usize,
    experts: &[u16],
    tokens: &[u32],
    shards: &[Shard],
) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..experts.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(tokens[index]));
    let mut rows = vec![0; shards.len()];
    let mut chosen = vec![None; experts.len()];
    for index in order {
        let among = |set: fn(&Shard) -> &ExpertSet| {
            let can = |worker: &usize| {
                let shard = &shards[*worker];
                shard.answers && set(shard).contains(layer, experts[index])
            };
            (0..shards.len()).filter(can).min_by_key(|&worker| rows[worker])
        };
        let kept = shards.iter().any(|shard| shard.keeps.contains(layer, experts[index]));
        let owner = || among(|shard| &shard.keeps).or_else(|| among(|shard| &shard.experts));
        chosen[index] = kept.then(owner).flatten();
        if let Some(worker) = chosen[index] {
            rows[worker] += tokens[index];
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shard(layers: Range<usize>, experts: Range<u16>) -> Shard {
        Shard::keeping_all(ExpertSet::of_layers(layers, experts))
    }

    /// Experts from the first on, with so many rows each.
    fn shared(layer: usize, rows: &[u32], shards: &[Shard]) -> Vec<Option<usize>> {
        let experts: Vec<u16> = (0..rows.len() as u16).collect();
        share_out(layer, &experts, rows, shards)
    }

    #[test]
    fn a_set_has_what_was_put_in() {
        let mut set = ExpertSet::of_layers([1, 3], 62..66);
        set.insert(2, 130);
        let all = (0..5).flat_map(|layer| (0..256).map(move |expert| (layer, expert)));
        let found: Vec<_> = all.filter(|&(layer, expert)| set.contains(layer, expert)).collect();
        let wide = |layer| (62..66).map(move |expert| (layer, expert));
        assert_eq!(found, wide(1).chain([(2, 130)]).chain(wide(3)).collect::<Vec<_>>());
        assert_eq!((set.count(), ExpertSet::default().count()), (9, 0));
        assert_eq!(set.runs(), [(1, 62..66), (2, 130..131), (3, 62..66)]);
    }

    #[test]
    fn whole_layers_go_to_whoever_has_them() {
        let shards = [shard(0..1, 0..8), shard(1..2, 0..8)];
        let rows = [1, 2, 3];
        assert_eq!(shared(0, &rows, &shards), [Some(0); 3]);
        assert_eq!(shared(1, &rows, &shards), [Some(1); 3]);
        assert_eq!(shared(2, &rows, &shards), [None; 3]);
    }

    #[test]
    fn replicas_share_and_stand_in_for_each_other() {
        let mut shards = [shard(0..1, 0..4), shard(0..1, 0..4)];
        // 5 on one side; 4, 1 on the other.
        let all = [1, 5, 4];
        assert_eq!(shared(0, &all, &shards), [Some(1), Some(0), Some(1)]);
        shards[1].answers = false;
        assert_eq!(shared(0, &all, &shards), [Some(0); 3]);
        shards[0].answers = false;
        assert_eq!(shared(0, &all, &shards), [None; 3]);
    }

    #[test]
    fn an_owner_is_asked_first_and_what_is_the_heads_stays() {
        let keeping = |experts| {
            let keeps = ExpertSet::of_layers(0..1, experts);
            Shard { keeps, ..shard(0..1, 0..6) }
        };
        let mut shards = [keeping(0..2), keeping(2..4)];
        let rows = [1, 9, 1, 1, 5, 5];
        let own = [Some(0), Some(0), Some(1), Some(1), None, None];
        assert_eq!(shared(0, &rows, &shards), own);
        shards[0].answers = false;
        let left = [Some(1), Some(1), Some(1), Some(1), None, None];
        assert_eq!(shared(0, &rows, &shards), left);
    }

    proptest! {
        #[test]
        fn nobody_gets_what_it_has_not_and_the_greedy_bound_holds(
            rows in prop::collection::vec(1_u32..64, 1..32),
            workers in 1_usize..5,
        ) {
            let shards: Vec<Shard> = (0..workers).map(|_| shard(0..1, 0..24)).collect();
            let chosen = shared(0, &rows, &shards);
            let mut sums = vec![0_u32; workers];
            for (expert, (rows, worker)) in rows.iter().zip(&chosen).enumerate() {
                prop_assert_eq!(worker.is_some(), expert < 24);
                if let Some(worker) = worker {
                    sums[*worker] += rows;
                }
            }
            // Longest first is within 4/3 of the best division, which no division beats.
            let total: u32 = sums.iter().sum();
            let largest = rows.iter().take(24).max().copied().unwrap_or(0);
            let floor = f64::from(total.div_ceil(workers as u32).max(largest));
            prop_assert!(f64::from(*sums.iter().max().unwrap()) <= floor * 4.0 / 3.0 + f64::from(largest));
        }
    }
}
