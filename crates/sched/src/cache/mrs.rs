//! Minus Recent Score (H3): S = α · TopP(s) + (1 − α) · S with p = 2k; the lowest S leaves first.
//!
//! With full router scores the p best count, chosen or not. With weights only the chosen count
//! with their weights; with ids only each counts 1/k, which makes MRS a fading count (`lfru`).

use motley_trace::{ExpertGrid, ExpertKey};

use super::decay::FadingSums;
use super::{CachePolicy, Ranks, Routed};

/// Ranks by the averaged router score. O(experts) per visit with full scores, else O(log n) per
/// chosen expert.
#[derive(Clone, Debug)]
pub struct Mrs {
    alpha: f64,
    top: usize,
    averages: FadingSums,
    /// Experts by score, reused between visits.
    order: Vec<u16>,
}

/// Parameters of [`Mrs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MrsParams {
    /// α, the share of the newest score, 0 < α < 1. The paper leaves it open.
    pub alpha: f64,
    /// p, how many of the best scores count; the paper takes 2k.
    pub top: u16,
}

impl Mrs {
    /// All averages zero.
    pub fn new(grid: ExpertGrid, params: MrsParams) -> Self {
        Self {
            alpha: params.alpha,
            top: usize::from(params.top),
            averages: FadingSums::new(grid, 1.0 - params.alpha),
            order: Vec::with_capacity(usize::from(grid.experts)),
        }
    }

    fn add(&mut self, key: ExpertKey, score: f32, ranks: &mut Ranks) {
        ranks.set(key, self.averages.add(key, self.alpha * f64::from(score)));
    }

    fn add_top_scores(&mut self, routed: &Routed<'_>, ranks: &mut Ranks) {
        let scores = routed.scores;
        let top = self.top.min(scores.len());
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..scores.len() as u16);
        if top < order.len() {
            let by_score = |a: &u16, b: &u16| {
                scores[usize::from(*b)].total_cmp(&scores[usize::from(*a)]).then(a.cmp(b))
            };
            order.select_nth_unstable_by(top, by_score);
        }
        for &expert in &order[..top] {
            let key = ExpertKey::new(routed.layer, expert);
            self.add(key, scores[usize::from(expert)], ranks);
        }
        self.order = order;
    }
}

impl CachePolicy for Mrs {
    fn name(&self) -> &'static str {
        "mrs"
    }

    fn on_visit(&mut self, routed: &Routed<'_>, ranks: &mut Ranks) {
        self.averages.fade(routed.layer);
        if !routed.scores.is_empty() {
            self.add_top_scores(routed, ranks);
            return;
        }
        let even = 1.0 / routed.experts.len().max(1) as f32;
        for (index, key) in routed.keys().enumerate() {
            self.add(key, routed.weights.get(index).copied().unwrap_or(even), ranks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: ExpertGrid = ExpertGrid { layers: 1, experts: 5 };

    /// Experts from the highest rank to the lowest after the visits.
    fn order(visits: &[Routed<'_>]) -> Vec<u16> {
        let mut mrs = Mrs::new(GRID, MrsParams { alpha: 0.5, top: 2 });
        let mut ranks = Ranks::new(GRID);
        visits.iter().for_each(|routed| mrs.on_visit(routed, &mut ranks));
        let mut order: Vec<u16> = (0..GRID.experts).collect();
        order.sort_by_key(|&expert| std::cmp::Reverse(ranks.get(ExpertKey::new(0, expert))));
        order
    }

    #[test]
    fn with_full_scores_the_best_p_count_chosen_or_not() {
        let scores = [0.1, 0.3, 0.05, 0.35, 0.2];
        let routed = Routed { tokens: 1, experts: &[3], scores: &scores, ..Routed::default() };
        assert_eq!(order(&[routed])[..2], [3, 1]);
        // S of expert 1 becomes 0.3/4 + 0.9/2, of expert 3 0.35/4: the equation of H3.
        let later = Routed { scores: &[0.0, 0.9, 0.1, 0.0, 0.0], ..routed };
        assert_eq!(order(&[routed, later])[..3], [1, 3, 2]);
    }

    #[test]
    fn with_weights_the_chosen_count_and_fade() {
        let heavy =
            Routed { tokens: 1, experts: &[0, 1], weights: &[0.9, 0.1], ..Routed::default() };
        let light = Routed { experts: &[2, 1], weights: &[0.3, 0.7], ..heavy };
        // After both: 0: 0.225, 1: 0.375, 2: 0.15.
        assert_eq!(order(&[heavy, light])[..3], [1, 0, 2]);
    }
}
