//! One expert's matrices as a graph takes them, in the order of a GGUF file: one row per
//! output.

use crate::spec::{BLOCK, ExpertShape, GraphSpec, Precision};
use half::f16;

/// Bytes of a Q4_0 block: a scale of two, then 32 weights of four bits.
const Q4_0_BYTES: usize = 18;
/// Bytes of the weights of a block.
pub(crate) const PACKED_BYTES: usize = BLOCK / 2;

/// One matrix.
#[derive(Debug, Clone, PartialEq)]
pub enum Matrix {
    /// As numbers.
    Floats(Vec<f32>),
    /// As blocks of GGUF's Q4_0, rows whole.
    Q4(Vec<u8>),
}

impl From<Vec<f32>> for Matrix {
    fn from(numbers: Vec<f32>) -> Self {
        Self::Floats(numbers)
    }
}

impl Matrix {
    /// Whether it is `weights` numbers in the form `precision` takes.
    fn fits(&self, weights: usize, precision: Precision) -> bool {
        match (self, precision) {
            (Self::Floats(numbers), Precision::F32 | Precision::F16) => numbers.len() == weights,
            (Self::Q4(blocks), Precision::Q4) => {
                weights.is_multiple_of(BLOCK) && blocks.len() == weights / BLOCK * Q4_0_BYTES
            }
            _ => false,
        }
    }

    /// The numbers; none of a matrix in blocks.
    pub(crate) fn floats(&self) -> &[f32] {
        match self {
            Self::Floats(numbers) => numbers,
            Self::Q4(_) => &[],
        }
    }

    /// The blocks; none of a matrix of numbers.
    pub(crate) fn blocks(&self) -> impl ExactSizeIterator<Item = &[u8; Q4_0_BYTES]> {
        match self {
            Self::Floats(_) => [].iter(),
            Self::Q4(blocks) => blocks.as_chunks().0.iter(),
        }
    }
}

/// Matrices of one expert.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpertWeights {
    /// `(inner, hidden)`.
    pub gate: Matrix,
    /// `(inner, hidden)`.
    pub up: Matrix,
    /// `(hidden, inner)`.
    pub down: Matrix,
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
    /// Whether every part has the size and form `spec` asks for, with biases or without.
    pub fn fits(&self, spec: &GraphSpec) -> bool {
        let ExpertShape { hidden, inner } = spec.shape;
        let matrices = [&self.gate, &self.up, &self.down];
        let biases = self.biases.as_ref().map(|b| [b.gate.len(), b.up.len(), b.down.len()]);
        matrices.iter().all(|matrix| matrix.fits(hidden * inner, spec.precision))
            && biases == spec.biased.then_some([inner, inner, hidden])
    }
}

/// `matrix` of `rows` rows, its columns first: what a graph multiplies rows with.
pub(crate) fn transposed(matrix: &[f32], rows: usize) -> impl Iterator<Item = f32> {
    let columns = matrix.len() / rows.max(1);
    (0..columns).flat_map(move |column| (0..rows).map(move |row| matrix[row * columns + column]))
}

/// The scale of a Q4_0 block.
pub(crate) fn scale(block: &[u8; Q4_0_BYTES]) -> f32 {
    f16::from_le_bytes([block[0], block[1]]).to_f32()
}

/// The weights of a Q4_0 block in the order of `MatMulNBits`. GGUF has weight `i` in the low
/// half of byte `i` and weight `16 + i` in its high half; there, neighbours share a byte.
pub(crate) fn packed(block: &[u8; Q4_0_BYTES]) -> [u8; PACKED_BYTES] {
    let weight = |at: usize| match at {
        0..PACKED_BYTES => block[2 + at] & 15,
        _ => block[2 + at - PACKED_BYTES] >> 4,
    };
    std::array::from_fn(|byte| weight(2 * byte) | weight(2 * byte + 1) << 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Activation;

    const SPEC: GraphSpec = GraphSpec {
        shape: ExpertShape { hidden: 2, inner: 3 },
        experts: 1,
        capacity: 16,
        activation: Activation::SwiGlu,
        biased: false,
        precision: Precision::F32,
    };

    #[test]
    fn columns_come_first() {
        let found: Vec<f32> = transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2).collect();
        assert_eq!(found, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn biases_come_whole_or_not_at_all() {
        let six = || Matrix::Floats(vec![0.0; 6]);
        let plain = ExpertWeights { gate: six(), up: six(), down: six(), biases: None };
        let biased = GraphSpec { biased: true, ..SPEC };
        assert!(plain.fits(&SPEC) && !plain.fits(&biased));
        let biases = Biases { gate: vec![0.0; 3], up: vec![0.0; 3], down: vec![0.0; 3] };
        let short = ExpertWeights { biases: Some(biases), ..plain };
        assert!(!short.fits(&biased), "down's bias has two values");
    }

    #[test]
    fn blocks_are_for_four_bits_only() {
        let blocks = Matrix::Q4(vec![0; 2 * Q4_0_BYTES]);
        assert!(blocks.fits(64, Precision::Q4) && !blocks.fits(64, Precision::F16));
        assert!(!blocks.fits(96, Precision::Q4));
        assert!(!Matrix::Floats(vec![0.0; 64]).fits(64, Precision::Q4));
    }

    #[test]
    fn neighbours_share_a_byte() {
        let mut block = [0; Q4_0_BYTES];
        block[..2].copy_from_slice(&f16::from_f32(0.5).to_le_bytes());
        for at in 0..PACKED_BYTES {
            // Weight i is i mod 16 in the first half and 15 - i mod 16 in the second.
            block[2 + at] = at as u8 | (15 - at as u8) << 4;
        }
        assert_eq!(scale(&block), 0.5);
        let packed = packed(&block);
        assert_eq!(packed[..3], [0x10, 0x32, 0x54]);
        assert_eq!(packed[8..11], [0xef, 0xcd, 0xab]);
    }
}
