//! Predictions of the coming layers, of a stated quality: the simulator's stand-in for applying
//! the next gates to the current hidden state (H2).

use std::collections::BTreeMap;

use motley_sched::prefetch::Prediction;
use motley_trace::Visit;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// How well the coming layers are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PredictionParams {
    /// Layers looked ahead; 0 makes no predictions.
    pub layers: u16,
    /// Chance that a choice one layer ahead is predicted; `d` layers ahead it is this to the
    /// power `d`. A choice that is not predicted is replaced by any expert.
    pub accuracy: f64,
    /// Seed of the wrong ones.
    pub seed: u64,
}

/// Makes the predictions of each layer of one pass.
#[derive(Debug)]
pub struct Predictor {
    params: PredictionParams,
    experts: u16,
    random: Pcg64,
    /// For each visit of the pass, the predictions made there.
    predictions: Vec<Vec<Prediction>>,
}

impl Predictor {
    /// Before the first pass.
    pub fn new(params: PredictionParams, experts: u16) -> Self {
        let random = Pcg64::seed_from_u64(params.seed);
        Self { params, experts, random, predictions: Vec::new() }
    }

    /// The predictions of one pass, a list for each of its visits.
    pub fn predict_pass(&mut self, pass: &[Visit]) -> &[Vec<Prediction>] {
        self.predictions.clear();
        let looks_ahead = self.params.layers > 0;
        for at in (0..pass.len()).filter(|_| looks_ahead) {
            let ahead = usize::from(self.params.layers).min(pass.len() - at - 1);
            let ahead = (1..=ahead).map(|d| self.predict(&pass[at + d], d as i32)).collect();
            self.predictions.push(ahead);
        }
        &self.predictions
    }

    pub(crate) fn predictions(&self, at: usize) -> &[Prediction] {
        self.predictions.get(at).map_or(&[], Vec::as_slice)
    }

    fn predict(&mut self, visit: &Visit, distance: i32) -> Prediction {
        let chance = self.params.accuracy.powi(distance);
        let mut loads: BTreeMap<u16, u32> = BTreeMap::new();
        for &expert in &visit.experts {
            let right = self.random.random::<f64>() < chance;
            let expert = if right { expert } else { self.random.random_range(0..self.experts) };
            *loads.entry(expert).or_default() += 1;
        }
        Prediction { layer: visit.layer, loads: loads.into_iter().collect() }
    }
}
