//! Predictions of the coming layers, of a stated quality: the simulator's stand-in for applying
//! the next gates to the current hidden state (H2).

use std::collections::BTreeMap;

use motley_sched::prefetch::Prediction;
use motley_trace::{Phase, Visit};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// How many coming layers are predicted; 0 makes no predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayersAhead {
    pub prompts: u16,
    pub decode: u16,
}

impl LayersAhead {
    /// Those that somebody looks at, as an engine asks for them.
    pub fn asked(in_phase: impl Fn(Phase) -> u16) -> Self {
        Self { prompts: in_phase(Phase::Prefill), decode: in_phase(Phase::Decode) }
    }

    fn in_phase(self, phase: Phase) -> u16 {
        match phase {
            Phase::Prefill => self.prompts,
            Phase::Decode => self.decode,
        }
    }
}

/// How well the coming layers are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PredictionParams {
    pub layers: LayersAhead,
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
        let phase = pass.first().map_or(Phase::Decode, |visit| visit.phase);
        let layers = usize::from(self.params.layers.in_phase(phase));
        for at in (0..pass.len()).filter(|_| layers > 0) {
            let ahead = layers.min(pass.len() - at - 1);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_is_predicted_as_far_as_is_asked() {
        let layers = LayersAhead::asked(|phase| if phase == Phase::Prefill { 1 } else { 3 });
        let params = PredictionParams { layers, accuracy: 1.0, seed: 0 };
        let mut predictor = Predictor::new(params, 8);
        let mut layers_of = |phase| {
            let visit = |layer| Visit { layer, phase, experts: vec![layer], ..Visit::default() };
            let pass: Vec<Visit> = (0..5).map(visit).collect();
            let predicted = predictor.predict_pass(&pass).iter();
            let layers = |made: &Vec<Prediction>| made.iter().map(|one| one.layer).collect();
            predicted.map(layers).collect::<Vec<Vec<u16>>>()
        };
        let prompt = layers_of(Phase::Prefill);
        assert_eq!(prompt, [vec![1], vec![2], vec![3], vec![4], vec![]]);
        let decode = layers_of(Phase::Decode);
        assert_eq!(decode, [vec![1, 2, 3], vec![2, 3, 4], vec![3, 4], vec![4], vec![]]);
    }
}
