//! A1 and the modified objective of A4: which measured choice is best. Compares; measures nothing.

use motley_cost::PowerHeuristic;

use super::set::CoreSet;
use super::{Measurement, Selection, Tried, Verdict};

/// Slowdown nobody notices (A1).
pub const EPSILON: f64 = 0.08;
/// Weight of the heuristic beside measured energy; the source leaves it open.
pub const ALPHA: f64 = 0.5;

/// How choices are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// ε: allowed slowdown over the fastest.
    pub epsilon: f64,
    /// α: weight of the heuristic, 0 (measured energy alone) to 1.
    pub alpha: f64,
}

impl Default for Objective {
    fn default() -> Self {
        Self { epsilon: EPSILON, alpha: ALPHA }
    }
}

/// A measured choice with the heuristic's power.
pub(crate) fn tried(set: &CoreSet, measured: Measurement, heuristic: &PowerHeuristic) -> Tried {
    let heuristic_w = heuristic.watts(&set.per_cluster);
    Tried { set: set.clone(), measured: measured.sane(), heuristic_w }
}

impl Objective {
    /// The best of `candidates`, the first of which sets the bar for speed.
    ///
    /// `E_h = (1-α)·E + α·h·t`. The heuristic orders choices but is not a meter, so `h·t` is scaled
    /// to the same mean as `E` over the candidates. Without a measurement for each, `E_h = h·t`.
    pub(crate) fn choose(&self, candidates: &[Tried], measured: usize) -> Option<Selection> {
        let fastest = candidates.first()?;
        let bar = fastest.measured.tokens_per_s * (1.0 - self.epsilon);
        let costs = self.costs(candidates);
        // The fastest itself is always allowed, also when nothing moved at all.
        let allowed =
            |(at, tried): &(usize, &Tried)| *at == 0 || tried.measured.tokens_per_s >= bar;
        let fair = candidates.iter().enumerate().filter(allowed);
        let (best, _) = fair.min_by(|(a, _), (b, _)| costs[*a].total_cmp(&costs[*b]))?;
        let verdict = |(at, tried): (usize, &Tried)| {
            let energy_j = costs[at];
            if at == best {
                Verdict::Chosen { energy_j }
            } else if allowed(&(at, tried)) {
                Verdict::Dearer { energy_j }
            } else {
                let speed = tried.measured.tokens_per_s / fastest.measured.tokens_per_s;
                Verdict::TooSlow { speed }
            }
        };
        let verdicts: Vec<_> = candidates.iter().enumerate().map(verdict).collect();
        Some(Selection {
            chosen: candidates[best].set.clone(),
            fastest: fastest.set.clone(),
            candidates: candidates.iter().cloned().zip(verdicts).collect(),
            measured,
            energy_measured: all_metered(candidates),
        })
    }

    fn costs(&self, candidates: &[Tried]) -> Vec<f64> {
        let guessed = |tried: &Tried| tried.heuristic_w * tried.measured.token_s();
        if !all_metered(candidates) {
            return candidates.iter().map(guessed).collect();
        }
        let metered = |tried: &Tried| tried.measured.joules_per_token.unwrap_or(0.0);
        let finite = || candidates.iter().filter(|tried| guessed(tried).is_finite());
        let scale = finite().map(metered).sum::<f64>() / finite().map(guessed).sum::<f64>();
        let blend = |tried: &Tried| {
            (1.0 - self.alpha) * metered(tried) + self.alpha * scale * guessed(tried)
        };
        let blended = |tried: &Tried| if self.alpha > 0.0 { blend(tried) } else { metered(tried) };
        candidates.iter().map(blended).collect()
    }
}

fn all_metered(candidates: &[Tried]) -> bool {
    candidates.iter().all(|tried| tried.measured.joules_per_token.is_some())
}
