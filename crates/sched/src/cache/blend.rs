//! Blend, Motley's own policy: the expert least likely to be chosen at its layer's next visits
//! leaves first, by a forecast blended online from seven simple ones.
//!
//! Six forecasts are an expert's fading share of choices, at time scales from one visit (recency)
//! to 1024 (frequency). The seventh is succession: which experts followed those just chosen. How
//! much each counts is learned while running, by exponentiated gradient on the likelihood of the
//! choices made, so no half-life has to be guessed. It is learned twice: from forecasts one visit
//! old (soon: recency and succession win) and up to 16 visits old (later: frequency wins).
//!
//! ```text
//! forecast(e) = Σ_s w_s · fading_s(e) + w_7 · mean over chosen j of P(e | j one visit before)
//! w           = w_soon + LATER · w_later
//! w_i         ∝ w_i · exp(rate · ∂ log-likelihood / ∂ w_i)
//! ```
//!
//! Forecasts are shares of tokens, so layers compare in one pool. There the layer just visited
//! comes again last, hence forecasts are discounted per visit already made (`VISIT_DISCOUNT`).
//! Measured in `docs/experiments/cache-policies.md`.

use motley_trace::ExpertGrid;

use super::{CachePolicy, Rank, Ranks, Routed};

/// Time scales of the fading shares, in visits.
const SCALES_VISITS: [f32; 6] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0];
/// Forecasts that are blended: the scales, then succession.
const FORECASTS: usize = SCALES_VISITS.len() + 1;
/// Visits after which the forecasts of the past are renewed.
const HORIZON_VISITS: u64 = 16;
/// How much the forecast for later visits counts beside that for the next. More favours steady
/// texts and large caches, less favours drifting ones and small caches.
const LATER: f32 = 0.5;
/// Where succession stands among the forecasts.
const SUCCESSION: usize = FORECASTS - 1;
/// Weight of succession before anything is learned; the scales share the rest evenly.
const FIRST_SUCCESSION_WEIGHT: f32 = 0.02;
/// Least share of a new observation in a succession row: it forgets after about 20.
const MIN_SUCCESSION_RATE: f32 = 0.05;
/// What one more visit of a layer takes from the rank of its experts, in the units of
/// [`rank_of`]: a tenth off the forecast, 2²³ · log₂(1 / 0.9).
const VISIT_DISCOUNT: u64 = 1_275_000;
/// Ranks start here, so that discounts of 10¹² visits stay above zero.
const FIRST_RANK: u64 = 1 << 62;
/// Largest step of a learned weight in one visit, as exponent.
const MAX_STEP: f32 = 1.0;
/// What stands for zero where a logarithm or quotient needs more.
const TINY: f32 = 1e-9;

/// Parameters of [`Blend`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlendParams {
    /// Rate of learning the weights; 0 keeps them as they are.
    pub learning_rate: f32,
    /// Whether succession is learned, at 4 · layers · experts² bytes (24 MB at 94 × 256).
    pub succession: bool,
}

impl Default for BlendParams {
    fn default() -> Self {
        Self { learning_rate: 0.02, succession: true }
    }
}

/// Ranks by the blended forecast. O(k · experts) per visit, in a few straight loops.
#[derive(Clone, Debug)]
pub struct Blend {
    learning_rate: f32,
    /// Weights for a layer's next visit.
    soon: Weights,
    /// Weights for the visits after it.
    later: Weights,
    layers: Vec<LayerHistory>,
    /// Ranks of one layer, reused between visits.
    scratch: Vec<Rank>,
}

impl Blend {
    /// A policy that has seen nothing.
    pub fn new(grid: ExpertGrid, params: BlendParams) -> Self {
        let layer = LayerHistory::new(usize::from(grid.experts), params.succession);
        Self {
            learning_rate: params.learning_rate,
            soon: Weights::new(params.succession),
            later: Weights::new(params.succession),
            layers: vec![layer; usize::from(grid.layers)],
            scratch: Vec::with_capacity(usize::from(grid.experts)),
        }
    }

    /// The learned weights for a layer's next visit: of the six scales, shortest first, then of
    /// succession.
    pub fn weights(&self) -> [f32; FORECASTS] {
        self.soon.0
    }

    fn learn(&mut self, routed: &Routed<'_>) {
        let layer = &self.layers[usize::from(routed.layer)];
        let now = |expert| layer.forecasts_of(expert);
        self.soon.learn(self.learning_rate, routed, &layer.sums, now);
        let then = |expert: usize| layer.past.forecasts[expert];
        self.later.learn(self.learning_rate, routed, &layer.past.sums, then);
    }
}

/// How much each forecast counts; they sum to one.
#[derive(Clone, Copy, Debug)]
struct Weights([f32; FORECASTS]);

impl Weights {
    fn new(succession: bool) -> Self {
        let succession = if succession { FIRST_SUCCESSION_WEIGHT } else { 0.0 };
        let mut weights = [(1.0 - succession) / SCALES_VISITS.len() as f32; FORECASTS];
        weights[SUCCESSION] = succession;
        Self(weights)
    }

    fn of(&self, forecasts: &[f32; FORECASTS]) -> f32 {
        self.0.iter().zip(forecasts).map(|(weight, forecast)| weight * forecast).sum()
    }

    /// Moves the weights towards the forecasts that foresaw this visit.
    ///
    /// The likelihood is that of drawing the chosen experts from the normalised forecast, so its
    /// gradient needs the chosen experts and the column sums only. Experts no forecast knew teach
    /// nothing: counted, they would favour whichever forecast says least.
    fn learn(
        &mut self,
        rate: f32,
        routed: &Routed<'_>,
        sums: &[f32; FORECASTS],
        forecasts_of: impl Fn(usize) -> [f32; FORECASTS],
    ) {
        let total = self.of(sums);
        let mut gained = [0.0; FORECASTS];
        let mut forecast_load = 0.0;
        for (index, &expert) in routed.experts.iter().enumerate() {
            let forecasts = forecasts_of(usize::from(expert));
            let blended = self.of(&forecasts);
            if blended > TINY {
                let load = routed.load(index) as f32;
                forecast_load += load;
                gained.iter_mut().zip(&forecasts).for_each(|(sum, f)| *sum += load * f / blended);
            }
        }
        if forecast_load == 0.0 || total <= TINY {
            return;
        }
        for (index, weight) in self.0.iter_mut().enumerate() {
            let gradient = gained[index] / forecast_load - sums[index] / total;
            *weight *= (rate * gradient).clamp(-MAX_STEP, MAX_STEP).exp();
        }
        let sum: f32 = self.0.iter().sum();
        self.0.iter_mut().for_each(|weight| *weight /= sum);
    }
}

impl CachePolicy for Blend {
    fn name(&self) -> &'static str {
        "blend"
    }

    fn on_visit(&mut self, routed: &Routed<'_>, ranks: &mut Ranks) {
        self.learn(routed);
        let layer = &mut self.layers[usize::from(routed.layer)];
        layer.observe(routed);
        let first = FIRST_RANK.saturating_sub(VISIT_DISCOUNT.saturating_mul(layer.visits));
        self.scratch.clear();
        let weights = std::array::from_fn(|index| self.soon.0[index] + LATER * self.later.0[index]);
        let blended = layer.blend(&weights).iter();
        self.scratch.extend(blended.map(|&forecast| rank_of(forecast, first)));
        ranks.set_layer(routed.layer, &self.scratch);
    }
}

/// A rank that grows with the logarithm of a forecast, 2²³ per doubling: the bits of a positive
/// float are its logarithm with straight lines between powers of two, which keeps the order and
/// costs nothing.
fn rank_of(forecast: f32, first: u64) -> Rank {
    Rank::from_u64(first + u64::from(forecast.max(0.0).to_bits()))
}

/// The forecasts as they were some visits ago.
#[derive(Clone, Debug)]
struct Past {
    /// `(experts, forecasts)`.
    forecasts: Vec<[f32; FORECASTS]>,
    sums: [f32; FORECASTS],
}

/// What one layer remembers of its experts.
#[derive(Clone, Debug)]
struct LayerHistory {
    visits: u64,
    /// Fading share of tokens that chose each expert, `(scales, experts)`.
    fading: [Vec<f32>; SCALES_VISITS.len()],
    /// Share of each scale's window that has been seen, 0..=1: the same fading sum over ones.
    warmth: [f32; SCALES_VISITS.len()],
    succession: Option<Succession>,
    /// Sum of each scale's `fading`, kept by the same recurrence.
    faded_sums: [f32; SCALES_VISITS.len()],
    /// Sum of each forecast over the experts.
    sums: [f32; FORECASTS],
    /// The forecasts at the last visit divisible by [`HORIZON_VISITS`].
    past: Past,
    /// The blended forecast, reused between visits.
    blended: Vec<f32>,
}

impl LayerHistory {
    fn new(experts: usize, succession: bool) -> Self {
        Self {
            visits: 0,
            fading: std::array::from_fn(|_| vec![0.0; experts]),
            warmth: [TINY; SCALES_VISITS.len()],
            succession: succession.then(|| Succession::new(experts)),
            faded_sums: [0.0; SCALES_VISITS.len()],
            sums: [0.0; FORECASTS],
            past: Past { forecasts: vec![[0.0; FORECASTS]; experts], sums: [0.0; FORECASTS] },
            blended: vec![0.0; experts],
        }
    }

    fn forecasts_of(&self, expert: usize) -> [f32; FORECASTS] {
        std::array::from_fn(|index| match self.fading.get(index) {
            Some(fading) => fading[expert] / self.warmth[index],
            None => self.succession.as_ref().map_or(0.0, |next| next.forecast[expert]),
        })
    }

    /// Fades everything and adds this visit's choices. A visit of many tokens says more than one
    /// of one, but is one visit: it counts as 1 + log₂(tokens).
    fn observe(&mut self, routed: &Routed<'_>) {
        self.visits += 1;
        let chosen_share =
            (0..routed.experts.len()).map(|chosen| routed.load(chosen) as f32).sum::<f32>()
                / routed.tokens.max(1) as f32;
        let steps = 1.0 + (routed.tokens.max(1) as f32).log2();
        let per_token = 1.0 / routed.tokens.max(1) as f32;
        for (index, scale) in SCALES_VISITS.iter().enumerate() {
            let keep = (-steps / scale).exp();
            let fading = &mut self.fading[index];
            fade(fading, keep);
            for (chosen, &expert) in routed.experts.iter().enumerate() {
                let share = routed.load(chosen) as f32 * per_token;
                fading[usize::from(expert)] += (1.0 - keep) * share;
            }
            self.warmth[index] = self.warmth[index] * keep + (1.0 - keep);
            // Every scale has faded the same choices for as long as it has been warming.
            self.faded_sums[index] = self.faded_sums[index] * keep + (1.0 - keep) * chosen_share;
            self.sums[index] = self.faded_sums[index] / self.warmth[index];
        }
        if let Some(succession) = &mut self.succession {
            self.sums[SUCCESSION] = succession.observe(routed);
        }
        if self.visits.is_multiple_of(HORIZON_VISITS) {
            for expert in 0..self.blended.len() {
                self.past.forecasts[expert] = self.forecasts_of(expert);
            }
            self.past.sums = self.sums;
        }
    }

    fn blend(&mut self, weights: &[f32; FORECASTS]) -> &[f32] {
        let succession = self.succession.as_ref().map(|next| next.forecast.as_slice());
        let forecasts = self.fading.iter().map(Vec::as_slice).chain(succession);
        let warmth = self.warmth.iter().chain(&[1.0]);
        self.blended.fill(0.0);
        for ((forecast, warmth), weight) in forecasts.zip(warmth).zip(weights) {
            let weight = weight / warmth;
            self.blended.iter_mut().zip(forecast).for_each(|(sum, f)| *sum += weight * f);
        }
        &self.blended
    }
}

/// Which experts follow which, from one token of a layer to the next.
#[derive(Clone, Debug)]
struct Succession {
    experts: usize,
    /// P(column chosen | row chosen one visit before), `(experts, experts)`.
    followed: Vec<f32>,
    /// Sum of each row.
    row_sums: Vec<f32>,
    /// Times each row has been observed.
    seen: Vec<u32>,
    last: Vec<u16>,
    /// What follows the last visit, if the last token's experts speak with equal voice.
    forecast: Vec<f32>,
}

impl Succession {
    fn new(experts: usize) -> Self {
        Self {
            experts,
            followed: vec![0.0; experts * experts],
            row_sums: vec![0.0; experts],
            seen: vec![0; experts],
            last: Vec::new(),
            forecast: vec![0.0; experts],
        }
    }

    /// Learns from one token following another and returns the sum of the new forecast. Visits of
    /// several tokens break the succession.
    fn observe(&mut self, routed: &Routed<'_>) -> f32 {
        self.forecast.fill(0.0);
        if routed.tokens > 1 {
            self.last.clear();
            return 0.0;
        }
        for index in 0..self.last.len() {
            self.learn_row(usize::from(self.last[index]), routed.experts);
        }
        self.last.clear();
        self.last.extend_from_slice(routed.experts);
        let voice = 1.0 / routed.experts.len().max(1) as f32;
        let mut sum = 0.0;
        for &expert in routed.experts {
            let expert = usize::from(expert);
            sum += voice * self.row_sums[expert];
            let row = &self.followed[expert * self.experts..][..self.experts];
            self.forecast.iter_mut().zip(row).for_each(|(sum, p)| *sum += voice * p);
        }
        sum
    }

    fn learn_row(&mut self, row: usize, chosen: &[u16]) {
        let seen = &mut self.seen[row];
        *seen = seen.saturating_add(1);
        let rate = (1.0 / (*seen as f32 + 2.0)).max(MIN_SUCCESSION_RATE);
        self.row_sums[row] += rate * (chosen.len() as f32 - self.row_sums[row]);
        let row = &mut self.followed[row * self.experts..][..self.experts];
        fade(row, 1.0 - rate);
        chosen.iter().for_each(|&expert| row[usize::from(expert)] += rate);
    }
}

/// Multiplies, and lets go of what is too small to matter before it becomes a denormal number,
/// with which arithmetic is a hundred times slower.
fn fade(values: &mut [f32], keep: f32) {
    for value in values {
        let faded = *value * keep;
        *value = if faded < TINY { 0.0 } else { faded };
    }
}

#[cfg(test)]
mod tests {
    use motley_trace::ExpertKey;

    use super::*;

    const GRID: ExpertGrid = ExpertGrid { layers: 1, experts: 8 };

    fn after(visits: impl Iterator<Item = u16>) -> (Blend, Ranks) {
        let mut blend = Blend::new(GRID, BlendParams::default());
        let mut ranks = Ranks::new(GRID);
        for expert in visits {
            let routed = Routed { tokens: 1, experts: &[expert], ..Routed::default() };
            blend.on_visit(&routed, &mut ranks);
        }
        (blend, ranks)
    }

    #[test]
    fn succession_ranks_the_follower_first_in_a_cycle() {
        let (blend, ranks) = after((0..200).map(|token| token % 4));
        let next = ranks.get(ExpertKey::new(0, 0));
        assert!((1..8).all(|expert| ranks.get(ExpertKey::new(0, expert)) < next));
        assert!(blend.weights()[SUCCESSION] > 0.8, "{:?}", blend.weights());
    }

    #[test]
    fn bursts_teach_recency_and_a_steady_mix_teaches_frequency() {
        let (bursts, _) = after((0..400).map(|token| token / 20 % 8));
        let (mix, _) = after((0..400_u32).map(|token| (token * token * 7 + token * 3) as u16 % 5));
        let recency = |blend: &Blend| blend.weights()[..2].iter().sum::<f32>();
        assert!(recency(&bursts) > recency(&mix), "{:?} {:?}", bursts.weights(), mix.weights());
        assert!((bursts.weights().iter().sum::<f32>() - 1.0).abs() < 1e-3);
    }
}
