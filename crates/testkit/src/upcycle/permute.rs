//! Moves the neurons of one matrix in blocks, bytes unchanged.

use super::layout::FfnMatrix;
use crate::synth::fill::seeded;
use motley_model::gguf::GgmlType;
use rand_xoshiro::rand_core::Rng;

/// The order of one expert's blocks of neurons: new block `i` is dense block `order[i]`.
///
/// Expert 0 keeps the dense order. The three matrices of an expert share one order.
pub fn permutation(seed: u64, layer: u64, expert: u64, blocks: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..blocks as usize).collect();
    if expert > 0 {
        let mut rng = seeded(seed, &format!("order of layer {layer} expert {expert}"));
        for last in (1..order.len()).rev() {
            order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
        }
    }
    order
}

/// A dense matrix as it lies in the file: rows of whole quantised blocks.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
    columns: u64,
    rows: u64,
}

impl<'a> Matrix<'a> {
    /// Dimensions fastest first; the caller has checked that `bytes` fits them.
    pub fn new(ty: GgmlType, dims: &[u64], bytes: &'a [u8]) -> Self {
        let (columns, rows) = (dims[0], dims[1]);
        Self { bytes, row_bytes: bytes.len() / rows as usize, columns, rows }
            .checked(ty.row_bytes(columns))
    }

    fn checked(self, row_bytes: Option<u64>) -> Self {
        assert_eq!(row_bytes, Some(self.row_bytes as u64), "a matrix of whole blocks");
        self
    }

    /// Number of neurons, seen as this part of an FFN.
    pub fn neurons(&self, part: FfnMatrix) -> u64 {
        if part == FfnMatrix::Down { self.columns } else { self.rows }
    }

    /// The matrix with its blocks of `block` neurons in a new order.
    pub fn permuted(&self, part: FfnMatrix, block: u64, order: &[usize]) -> Vec<u8> {
        let blocks = order.len();
        match part {
            FfnMatrix::Gate | FfnMatrix::Up => {
                reorder(self.bytes, self.row_bytes * block as usize, order)
            }
            FfnMatrix::Down => self
                .bytes
                .chunks_exact(self.row_bytes)
                .flat_map(|row| reorder(row, self.row_bytes / blocks, order))
                .collect(),
        }
    }
}

/// Pieces of `size` bytes in a new order.
fn reorder(bytes: &[u8], size: usize, order: &[usize]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &index in order {
        out.extend_from_slice(&bytes[index * size..][..size]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_move_together() {
        // Two columns, four rows, bytes as elements; blocks of two neurons.
        let gate = Matrix::new(GgmlType::I8, &[2, 4], &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(gate.permuted(FfnMatrix::Gate, 2, &[1, 0]), [5, 6, 7, 8, 1, 2, 3, 4]);
        let down = Matrix::new(GgmlType::I8, &[4, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(down.permuted(FfnMatrix::Down, 2, &[1, 0]), [3, 4, 1, 2, 7, 8, 5, 6]);
    }

    #[test]
    fn orders_are_permutations_and_differ() {
        let orders: Vec<Vec<usize>> = (0..16).map(|e| permutation(0, 3, e, 48)).collect();
        assert!(orders[0].is_sorted());
        for (expert, order) in orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..48));
            assert!(!orders[..expert].contains(order));
        }
        assert_ne!(permutation(0, 3, 1, 48), permutation(1, 3, 1, 48));
        assert_ne!(permutation(0, 3, 1, 48), permutation(0, 4, 1, 48));
    }
}
