//! What was measured of choices of cores, and what became of each. Data; compares nothing.

use super::set::CoreSet;

/// What decoding on one choice of cores gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Speed; what is not finite or not above zero counts as standing still.
    pub tokens_per_s: f64,
    /// Measured energy, where there is a meter.
    pub joules_per_token: Option<f64>,
}

impl Measurement {
    /// Seconds per token; infinite when nothing moved.
    pub(crate) fn token_s(&self) -> f64 {
        if self.tokens_per_s > 0.0 { 1.0 / self.tokens_per_s } else { f64::INFINITY }
    }

    /// The measurement with nonsense replaced: a speed that is not a number is none.
    pub(crate) fn sane(self) -> Self {
        let speed = self.tokens_per_s;
        let joules = self.joules_per_token.filter(|joules| joules.is_finite() && *joules > 0.0);
        Self {
            tokens_per_s: if speed.is_finite() { speed.max(0.0) } else { 0.0 },
            joules_per_token: joules,
        }
    }
}

/// One measured choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    pub set: CoreSet,
    pub measured: Measurement,
    /// `h(I)` (A3) in watts.
    pub heuristic_w: f64,
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Taken.
    Chosen {
        /// Its energy per token, in joules.
        energy_j: f64,
    },
    /// Fast enough, but it costs more.
    Dearer {
        /// Its energy per token, in joules.
        energy_j: f64,
    },
    /// More than ε slower than the fastest.
    TooSlow {
        /// Its speed over the fastest's.
        speed: f64,
    },
}

/// The end of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The cheapest choice that is fast enough.
    pub chosen: CoreSet,
    /// The fastest choice, which sets the bar.
    pub fastest: CoreSet,
    /// Candidates the choice was made from, in the order of measuring, each with its verdict.
    pub candidates: Vec<(Tried, Verdict)>,
    /// Choices measured in all.
    pub measured: usize,
    /// Whether measured energy took part; otherwise the heuristic alone decided.
    pub energy_measured: bool,
}
