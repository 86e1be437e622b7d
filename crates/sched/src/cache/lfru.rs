//! Least frequently and recently used: a count of visits that fades (LRFU, Lee et al. 2001).
//! Between LRU (short half-life) and LFU (endless half-life).

use motley_trace::ExpertGrid;

use super::decay::FadingSums;
use super::{CachePolicy, Ranks, Routed};

/// Ranks by a fading count. O(log n) per touch.
#[derive(Clone, Debug)]
pub struct Lfru {
    counts: FadingSums,
}

impl Lfru {
    /// Counts lose half of themselves in `half_life_visits` visits of their layer.
    pub fn new(grid: ExpertGrid, half_life_visits: f64) -> Self {
        Self { counts: FadingSums::new(grid, 0.5_f64.powf(1.0 / half_life_visits)) }
    }
}

impl CachePolicy for Lfru {
    fn name(&self) -> &'static str {
        "lfru"
    }

    fn on_visit(&mut self, routed: &Routed<'_>, ranks: &mut Ranks) {
        self.counts.fade(routed.layer);
        for key in routed.keys() {
            ranks.set(key, self.counts.add(key, 1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use motley_trace::ExpertKey;

    use super::*;

    #[test]
    fn a_short_half_life_is_recency_and_a_long_one_frequency() {
        let grid = ExpertGrid { layers: 1, experts: 2 };
        let newest_leads = |half_life_visits: f64| {
            let mut lfru = Lfru::new(grid, half_life_visits);
            let mut ranks = Ranks::new(grid);
            for expert in [0, 0, 0, 1] {
                let routed = Routed { tokens: 1, experts: &[expert], ..Routed::default() };
                lfru.on_visit(&routed, &mut ranks);
            }
            ranks.get(ExpertKey::new(0, 1)) > ranks.get(ExpertKey::new(0, 0))
        };
        assert!(newest_leads(0.5));
        assert!(!newest_leads(50.0));
    }
}
