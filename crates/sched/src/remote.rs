//! Which machine computes the rows of each expert (W9, W10): rows go only to a worker that has the
//! expert, and where several have it, to the one that would be done first. What nobody has stays at
//! home.

/// Rows of one expert in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertLoad {
    /// Number in the layer.
    pub expert: u32,
    /// Tokens routed to it.
    pub rows: u32,
}

/// What a worker computes, and whether it can be reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Shard {
    /// By layer: whether it has experts of it.
    pub layers: Vec<bool>,
    /// First expert of each layer it has, and one past the last.
    pub experts: (u32, u32),
    /// Whether it answers.
    pub answers: bool,
    /// Time it takes for a row, relative to the others.
    pub row_cost: f64,
}

impl Shard {
    /// Whether it has this expert and answers.
    pub fn has(&self, layer: usize, expert: u32) -> bool {
        let layer = self.layers.get(layer).copied().unwrap_or(false);
        self.answers && layer && (self.experts.0..self.experts.1).contains(&expert)
    }
}

/// A worker for each of `loads`, in their order; `None` stays at home. The largest are given away
/// first, each to whoever would be done first (the greedy packing of EPLB).
pub fn share_out(layer: usize, loads: &[ExpertLoad], shards: &[Shard]) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(loads[index].rows));
    let mut done_at = vec![0.0; shards.len()];
    let mut chosen = vec![None; loads.len()];
    for index in order {
        let ExpertLoad { expert, rows } = loads[index];
        let ends = |worker: usize| done_at[worker] + f64::from(rows) * shards[worker].row_cost;
        let has = |worker: &usize| shards[*worker].has(layer, expert);
        let first = (0..shards.len()).filter(has).min_by(|a, b| ends(*a).total_cmp(&ends(*b)));
        if let Some(worker) = first {
            done_at[worker] = ends(worker);
            chosen[index] = Some(worker);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shard(layers: &[bool], experts: (u32, u32)) -> Shard {
        Shard { layers: layers.to_vec(), experts, answers: true, row_cost: 1.0 }
    }

    fn loads(rows: &[u32]) -> Vec<ExpertLoad> {
        (0..).zip(rows).map(|(expert, &rows)| ExpertLoad { expert, rows }).collect()
    }

    #[test]
    fn whole_layers_go_to_whoever_has_them() {
        let shards = [shard(&[true, false], (0, 8)), shard(&[false, true], (0, 8))];
        let loads = loads(&[1, 2, 3]);
        assert_eq!(share_out(0, &loads, &shards), [Some(0); 3]);
        assert_eq!(share_out(1, &loads, &shards), [Some(1); 3]);
        assert_eq!(share_out(2, &loads, &shards), [None; 3]);
    }

    #[test]
    fn replicas_share_and_stand_in_for_each_other() {
        let mut shards = [shard(&[true], (0, 4)), shard(&[true], (0, 4))];
        // 5 on one side; 4, 1 on the other.
        let all = loads(&[1, 5, 4]);
        assert_eq!(share_out(0, &all, &shards), [Some(1), Some(0), Some(1)]);
        shards[1].answers = false;
        assert_eq!(share_out(0, &all, &shards), [Some(0); 3]);
        shards[0].answers = false;
        assert_eq!(share_out(0, &all, &shards), [None; 3]);
    }

    proptest! {
        #[test]
        fn nobody_gets_what_it_has_not_and_the_greedy_bound_holds(
            rows in prop::collection::vec(1_u32..64, 1..32),
            workers in 1_usize..5,
        ) {
            let shards: Vec<Shard> = (0..workers).map(|_| shard(&[true], (0, 24))).collect();
            let loads = loads(&rows);
            let chosen = share_out(0, &loads, &shards);
            let mut sums = vec![0_u32; workers];
            for (load, worker) in loads.iter().zip(&chosen) {
                prop_assert_eq!(worker.is_some(), load.expert < 24);
                if let Some(worker) = worker {
                    sums[*worker] += load.rows;
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
