//! Static popularity (N1): ranks come from a profile and never change.
//! The expert least chosen while profiling leaves first, and none enters for a more popular one.

use motley_trace::{ExpertGrid, ExpertKey};

use super::{CachePolicy, Rank, Ranks, Routed};

/// Ranks by counts measured before. O(log n) once per expert.
#[derive(Clone, Debug)]
pub struct Popularity {
    grid: ExpertGrid,
    /// Share of its layer's choices, in parts per 2³², so that layers with fewer recorded tokens
    /// compare fairly; dense by [`ExpertGrid::index`].
    shares: Vec<u64>,
    ranked: bool,
}

impl Popularity {
    /// From counts `[layer][expert]`; what is missing counts as never chosen.
    pub fn new(grid: ExpertGrid, counts: &[Vec<u64>]) -> Self {
        let mut shares = vec![0; grid.len()];
        for (layer, row) in counts.iter().enumerate().take(usize::from(grid.layers)) {
            let total: u64 = row.iter().sum::<u64>().max(1);
            for (expert, &count) in row.iter().enumerate().take(usize::from(grid.experts)) {
                let key = ExpertKey::new(layer as u16, expert as u16);
                shares[grid.index(key)] = (u128::from(count) << 32).div_ceil(total.into()) as u64;
            }
        }
        Self { grid, shares, ranked: false }
    }

    fn rank_all(&mut self, ranks: &mut Ranks) {
        for layer in 0..self.grid.layers {
            for expert in 0..self.grid.experts {
                let key = ExpertKey::new(layer, expert);
                ranks.set(key, Rank::from_u64(self.shares[self.grid.index(key)]));
            }
        }
        self.ranked = true;
    }
}

impl CachePolicy for Popularity {
    fn name(&self) -> &'static str {
        "popularity"
    }

    fn on_visit(&mut self, _routed: &Routed<'_>, ranks: &mut Ranks) {
        if !self.ranked {
            self.rank_all(ranks);
        }
    }

    fn admits(&self, newcomer: Rank, victim: Rank) -> bool {
        newcomer > victim
    }

    fn bypasses(&self) -> bool {
        true
    }
}
