//! How well the layer before predicts a layer's experts: the measure of layer correlation.
//! Online: every token is first guessed from the tokens before it and only then learned.

use crate::record::TraceHeader;

/// Tokens per layer that are guessed; later ones are passed over, as guessing costs k · experts.
const MAX_GUESSED_TOKENS: u32 = 4096;
/// Pairs counted at most over all layers, at 4 bytes each; layers beyond are passed over.
const MAX_PAIRS: usize = 1 << 25;
/// Tokens per layer that are learned before guesses count.
const WARM_UP_TOKENS: u32 = 16;

/// Guesses the k experts of a layer by popularity, and by what the layer before chose.
#[derive(Clone, Debug)]
pub(crate) struct NextLayerGuess {
    experts: usize,
    layers: Vec<LayerTable>,
    scores: Vec<f32>,
    by_popularity: u64,
    by_layer_before: u64,
    guessed: u64,
}

#[derive(Clone, Debug)]
struct LayerTable {
    tokens: u32,
    chosen: Vec<u32>,
    /// Times column was chosen here after row in the layer before, `(experts, experts)`; empty
    /// until the layer is first visited.
    together: Vec<u32>,
}

impl NextLayerGuess {
    pub(crate) fn new(header: &TraceHeader) -> Self {
        let experts = usize::from(header.experts);
        let table = LayerTable { tokens: 0, chosen: vec![0; experts], together: Vec::new() };
        Self {
            experts,
            layers: vec![table; usize::from(header.layers)],
            scores: vec![0.0; experts],
            by_popularity: 0,
            by_layer_before: 0,
            guessed: 0,
        }
    }

    /// Guesses, then learns, what one token chose in `layer` after `before` in the layer before.
    pub(crate) fn observe(&mut self, layer: usize, before: &[u16], row: &[u16]) {
        let pairs = self.experts * self.experts;
        let table = &mut self.layers[layer];
        if table.tokens == MAX_GUESSED_TOKENS || (layer + 1) * pairs > MAX_PAIRS {
            return;
        }
        table.together.resize(pairs, 0);
        table.tokens += 1;
        if table.tokens > WARM_UP_TOKENS {
            self.guessed += row.len() as u64;
            for (score, &count) in self.scores.iter_mut().zip(&table.chosen) {
                *score = count as f32;
            }
            self.by_popularity += best_hits(&self.scores, row);
            table.score_after(before, &mut self.scores);
            self.by_layer_before += best_hits(&self.scores, row);
        }
        table.learn(before, row);
    }

    /// Share of experts guessed by popularity alone.
    pub(crate) fn by_popularity(&self) -> f64 {
        self.by_popularity as f64 / self.guessed.max(1) as f64
    }

    /// Share of experts guessed from the layer before.
    pub(crate) fn by_layer_before(&self) -> f64 {
        self.by_layer_before as f64 / self.guessed.max(1) as f64
    }
}

impl LayerTable {
    /// Mean over `before` of P(column | row), each backed by popularity worth one observation.
    fn score_after(&self, before: &[u16], scores: &mut [f32]) {
        let tokens = self.tokens as f32;
        scores.fill(0.0);
        for &row in before {
            let start = usize::from(row) * self.chosen.len();
            let counts = &self.together[start..start + self.chosen.len()];
            let seen = counts.iter().sum::<u32>() as f32 / before.len() as f32;
            for ((score, &count), &chosen) in scores.iter_mut().zip(counts).zip(&self.chosen) {
                *score += (count as f32 + chosen as f32 / tokens) / (seen + 1.0);
            }
        }
    }

    fn learn(&mut self, before: &[u16], row: &[u16]) {
        for &expert in row {
            self.chosen[usize::from(expert)] += 1;
            for &previous in before {
                self.together[usize::from(previous) * self.chosen.len() + usize::from(expert)] += 1;
            }
        }
    }
}

/// How many of `row` are among the `row.len()` best scores; ties count against the guess.
fn best_hits(scores: &[f32], row: &[u16]) -> u64 {
    let better = |expert: u16| {
        let own = scores[usize::from(expert)];
        let tie = |(other, &score): (usize, &f32)| {
            score > own || (score == own && other < usize::from(expert))
        };
        scores.iter().enumerate().filter(|&entry| tie(entry)).count()
    };
    row.iter().filter(|&&expert| better(expert) < row.len()).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FORMAT_VERSION;

    #[test]
    fn a_layer_that_copies_the_one_before_is_predicted() {
        let header =
            TraceHeader { version: FORMAT_VERSION, model: "m".into(), layers: 2, experts: 8, k: 1 };
        let mut guess = NextLayerGuess::new(&header);
        for token in 0..200_u16 {
            let before = token * 5 % 8;
            guess.observe(1, &[before], &[(before + 3) % 8]);
        }
        assert!(guess.by_layer_before() > 0.95, "{}", guess.by_layer_before());
        assert!(guess.by_popularity() < 0.3, "{}", guess.by_popularity());
    }
}
