//! Which machine computes the rows of each expert (W9, W10): rows go only to a worker that has the
//! expert, and where several have it, to the one that would be done first. What nobody has stays at
//! home.

/// What a worker computes, and whether it can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// By layer: whether it has experts of it.
    pub layers: Vec<bool>,
    /// First expert of each layer it has, and one past the last.
    pub experts: (u16, u16),
    /// Whether it answers.
    pub answers: bool,
}

impl Shard {
    /// Whether it has this expert and answers.
    pub fn has(&self, layer: usize, expert: u16) -> bool {
        let layer = self.layers.get(layer).copied().unwrap_or(false);
        self.answers && layer && (self.experts.0..self.experts.1).contains(&expert)
    }
}

/// A worker for each of `experts`, to which `tokens` rows each are routed; `None` stays at home. The
/// largest are given away first, each to whoever has the fewest rows then (the greedy packing of
/// EPLB).
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
        let has = |worker: &usize| shards[*worker].has(layer, experts[index]);
        chosen[index] = (0..shards.len()).filter(has).min_by_key(|&worker| rows[worker]);
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

    fn shard(layers: &[bool], experts: (u16, u16)) -> Shard {
        Shard { layers: layers.to_vec(), experts, answers: true }
    }

    /// Experts from the first on, with so many rows each.
    fn shared(layer: usize, rows: &[u32], shards: &[Shard]) -> Vec<Option<usize>> {
        let experts: Vec<u16> = (0..rows.len() as u16).collect();
        share_out(layer, &experts, rows, shards)
    }

    #[test]
    fn whole_layers_go_to_whoever_has_them() {
        let shards = [shard(&[true, false], (0, 8)), shard(&[false, true], (0, 8))];
        let rows = [1, 2, 3];
        assert_eq!(shared(0, &rows, &shards), [Some(0); 3]);
        assert_eq!(shared(1, &rows, &shards), [Some(1); 3]);
        assert_eq!(shared(2, &rows, &shards), [None; 3]);
    }

    #[test]
    fn replicas_share_and_stand_in_for_each_other() {
        let mut shards = [shard(&[true], (0, 4)), shard(&[true], (0, 4))];
        // 5 on one side; 4, 1 on the other.
        let all = [1, 5, 4];
        assert_eq!(shared(0, &all, &shards), [Some(1), Some(0), Some(1)]);
        shards[1].answers = false;
        assert_eq!(shared(0, &all, &shards), [Some(0); 3]);
        shards[0].answers = false;
        assert_eq!(shared(0, &all, &shards), [None; 3]);
    }

    proptest! {
        #[test]
        fn nobody_gets_what_it_has_not_and_the_greedy_bound_holds(
            rows in prop::collection::vec(1_u32..64, 1..32),
            workers in 1_usize..5,
        ) {
            let shards: Vec<Shard> = (0..workers).map(|_| shard(&[true], (0, 24))).collect();
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
