//! One expert's matrices as numbers, in the order of a GGUF file: one row per output.

use crate::spec::ExpertShape;

/// Matrices of one expert.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpertWeights {
    /// `(inner, hidden)`.
    pub gate: Vec<f32>,
    /// `(inner, hidden)`.
    pub up: Vec<f32>,
    /// `(hidden, inner)`.
    pub down: Vec<f32>,
    /// Where the model has them: for all three matrices.
    pub biases: Option<Biases>,
}

/// Biases of one expert.
#[derive(Debug, Clone, PartialEq)]
pub struct Biases {
    /// `(inner)`.
    pub gate: Vec<f32>,
    /// `(inner)`.
    pub up: Vec<f32>,
    /// `(hidden)`.
    pub down: Vec<f32>,
}

impl ExpertWeights {
    /// Whether every part has the size `shape` asks for, with biases or without.
    pub fn fits(&self, shape: ExpertShape, biased: bool) -> bool {
        let ExpertShape { hidden, inner } = shape;
        let matrices = [&self.gate, &self.up, &self.down];
        let biases = self.biases.as_ref().map(|b| [b.gate.len(), b.up.len(), b.down.len()]);
        matrices.iter().all(|matrix| matrix.len() == hidden * inner)
            && biases == biased.then_some([inner, inner, hidden])
    }
}

/// `matrix` of `rows` rows, its columns first: what a graph multiplies rows with.
pub(crate) fn transposed(matrix: &[f32], rows: usize) -> impl Iterator<Item = f32> {
    let columns = matrix.len() / rows.max(1);
    (0..columns).flat_map(move |column| (0..rows).map(move |row| matrix[row * columns + column]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_first() {
        let found: Vec<f32> = transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2).collect();
        assert_eq!(found, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn biases_come_whole_or_not_at_all() {
        let shape = ExpertShape { hidden: 2, inner: 3 };
        let six = vec![0.0; 6];
        let plain = ExpertWeights { gate: six.clone(), up: six.clone(), down: six, biases: None };
        assert!(plain.fits(shape, false) && !plain.fits(shape, true));
        let biases = Biases { gate: vec![0.0; 3], up: vec![0.0; 3], down: vec![0.0; 3] };
        let short = ExpertWeights { biases: Some(biases), ..plain };
        assert!(!short.fits(shape, true), "down's bias has two values");
    }
}
