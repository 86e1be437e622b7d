//! Sums that fade with every visit of their layer, ranked without touching what did not change.
//! Shared by `lfru` and `mrs`; it decides nothing.
//!
//! A sum S fades by the factor q at each visit of its layer. Stored is S at its last change n₀;
//! then S(n) = S · qⁿ⁻ⁿ⁰, and `ln S − n₀ · ln q` orders the sums of one layer at all times, since
//! every sum of the layer fades alike. Across layers it compares sums at equal numbers of visits,
//! so a layer just visited has no disadvantage against one about to be.

use motley_trace::{ExpertGrid, ExpertKey};

use super::Rank;

/// One fading sum per expert.
#[derive(Clone, Debug)]
pub(super) struct FadingSums {
    grid: ExpertGrid,
    keep: f64,
    sums: Vec<Sum>,
    visits: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    value: f64,
    at_visit: u64,
}

impl FadingSums {
    /// Zero sums that keep the share `keep` (0 < keep < 1) of themselves per visit.
    pub(super) fn new(grid: ExpertGrid, keep: f64) -> Self {
        Self {
            grid,
            keep: keep.clamp(1e-6, 1.0 - 1e-12),
            sums: vec![Sum::default(); grid.len()],
            visits: vec![0; usize::from(grid.layers)],
        }
    }

    /// A visit of `layer` begins: its sums fade once.
    pub(super) fn fade(&mut self, layer: u16) {
        self.visits[usize::from(layer)] += 1;
    }

    /// Adds to one sum and returns its new rank.
    pub(super) fn add(&mut self, key: ExpertKey, amount: f64) -> Rank {
        let now = self.visits[usize::from(key.layer)];
        let sum = &mut self.sums[self.grid.index(key)];
        let elapsed = (now - sum.at_visit).min(1 << 24) as i32;
        sum.value = sum.value * self.keep.powi(elapsed) + amount;
        sum.at_visit = now;
        if sum.value <= 0.0 {
            return Rank::LOWEST;
        }
        Rank::from_f64(sum.value.ln() - now as f64 * self.keep.ln())
    }
}
