//! Rows on their way into a static graph and out of it: gathered per expert, the rest
//! zeros, and only valid rows come back (W3).

use crate::spec::GraphSpec;

/// Input `[G·C, H]` of one run; reused from run to run.
#[derive(Debug, Clone)]
pub struct GroupRows {
    hidden: usize,
    capacity: usize,
    /// Rows each expert has been given.
    used: Vec<usize>,
    input: Vec<f32>,
}

impl GroupRows {
    /// Zeros for every row of `spec`.
    pub fn new(spec: &GraphSpec) -> Self {
        Self {
            hidden: spec.shape.hidden,
            capacity: spec.capacity,
            used: vec![0; spec.experts],
            input: vec![0.0; spec.rows() * spec.shape.hidden],
        }
    }

    /// Forgets all rows; what was used becomes zero again.
    pub fn clear(&mut self) {
        for (expert, used) in self.used.iter_mut().enumerate() {
            let start = expert * self.capacity * self.hidden;
            self.input[start..start + *used * self.hidden].fill(0.0);
            *used = 0;
        }
    }

    /// Takes `row` for the graph's `expert`; where it will come out, or `None` when that
    /// expert is full.
    ///
    /// # Panics
    /// When the graph has no such expert or the row another width.
    pub fn push(&mut self, expert: usize, row: &[f32]) -> Option<usize> {
        let used = &mut self.used[expert];
        if *used == self.capacity {
            return None;
        }
        let place = expert * self.capacity + *used;
        *used += 1;
        let start = place * self.hidden;
        self.input[start..start + self.hidden].copy_from_slice(row);
        Some(place)
    }

    /// Rows that hold something.
    pub fn valid(&self) -> usize {
        self.used.iter().sum()
    }

    /// Rows of zeros the graph computes all the same.
    pub fn padding(&self) -> usize {
        self.used.len() * self.capacity - self.valid()
    }

    /// All rows, `[G·C, H]`.
    pub fn input(&self) -> &[f32] {
        &self.input
    }

    /// Floats of a row.
    pub fn hidden(&self) -> usize {
        self.hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Activation, ExpertShape, Precision};

    #[test]
    fn rows_fill_their_experts_part_and_leave_zeros_behind() {
        let spec = GraphSpec {
            shape: ExpertShape { hidden: 2, inner: 2 },
            experts: 2,
            capacity: 2,
            activation: Activation::SwiGlu,
            biased: false,
            precision: Precision::F32,
        };
        let mut rows = GroupRows::new(&spec);
        assert_eq!(rows.push(1, &[1.0, 2.0]), Some(2));
        assert_eq!(rows.push(1, &[3.0, 4.0]), Some(3));
        assert_eq!(rows.push(1, &[5.0, 6.0]), None);
        assert_eq!((rows.valid(), rows.padding()), (2, 2));
        assert_eq!(rows.input(), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        rows.clear();
        assert_eq!((rows.valid(), rows.input()), (0, &[0.0; 8][..]));
    }
}
