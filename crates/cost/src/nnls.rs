//! Non-negative least squares for a handful of columns: the active-set method of Lawson and
//! Hanson on the normal equations. Not a general linear algebra library.

/// Most columns a problem may have; cost models need two or three.
pub const MAX_COLUMNS: usize = 8;

/// `argmin_x |A x - b|²` subject to `x >= 0`.
///
/// `rows[i]` is row `i` of `A`, all of one length of at most [`MAX_COLUMNS`]; `b` as long as
/// `rows`. Columns are scaled to unit length first, so times and byte counts may be mixed.
/// A column without information (all zero, or a multiple of one already chosen) gets 0.
pub fn nnls(rows: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let columns = rows.first().map_or(0, Vec::len);
    assert!(columns <= MAX_COLUMNS, "{columns} columns, at most {MAX_COLUMNS}");
    assert_eq!(rows.len(), b.len(), "one target per row");
    let (gram, moment, scale) = normal_equations(rows, b, columns);
    let mut active = ActiveSet { gram, moment, x: vec![0.0; columns], chosen: Vec::new() };
    // Each round enlarges the set or lowers the error; 3n rounds is the customary bound.
    for _ in 0..3 * columns.max(1) {
        if !active.grow() {
            break;
        }
    }
    active.x.iter().zip(&scale).map(|(x, s)| if *s > 0.0 { x / s } else { 0.0 }).collect()
}

type Matrix = Vec<Vec<f64>>;

/// `(AᵀA, Aᵀb, column lengths)` after scaling each column of `A` to length 1.
fn normal_equations(rows: &[Vec<f64>], b: &[f64], columns: usize) -> (Matrix, Vec<f64>, Vec<f64>) {
    let length = |j: usize| rows.iter().map(|row| row[j] * row[j]).sum::<f64>().sqrt();
    let scale: Vec<f64> = (0..columns).map(length).collect();
    let at = |row: &Vec<f64>, j: usize| if scale[j] > 0.0 { row[j] / scale[j] } else { 0.0 };
    let dot = |i: usize, j: usize| rows.iter().map(|row| at(row, i) * at(row, j)).sum::<f64>();
    let gram = (0..columns).map(|i| (0..columns).map(|j| dot(i, j)).collect()).collect();
    let moment = |j: usize| rows.iter().zip(b).map(|(row, b)| at(row, j) * b).sum::<f64>();
    let moments = (0..columns).map(moment).collect();
    (gram, moments, scale)
}

struct ActiveSet {
    gram: Matrix,
    moment: Vec<f64>,
    x: Vec<f64>,
    /// Columns allowed to be above zero.
    chosen: Vec<usize>,
}

impl ActiveSet {
    /// Adds the column that lowers the error fastest and solves again; false when none does.
    fn grow(&mut self) -> bool {
        let largest = self.moment.iter().fold(0.0f64, |a, m| a.max(m.abs()));
        let slack = 1e-12 * largest.max(f64::MIN_POSITIVE);
        let next = (0..self.x.len())
            .filter(|j| !self.chosen.contains(j))
            .map(|j| (self.descent(j), j))
            .filter(|(descent, _)| *descent > slack)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, column)) = next else { return false };
        self.chosen.push(column);
        if self.settle() {
            return true;
        }
        // The column repeats the chosen ones: leave it at zero, restore them and stop.
        self.chosen.retain(|j| *j != column);
        self.settle();
        false
    }

    /// Negative gradient along column `j`.
    fn descent(&self, j: usize) -> f64 {
        self.moment[j] - self.gram[j].iter().zip(&self.x).map(|(g, x)| g * x).sum::<f64>()
    }

    /// Solves over the chosen columns, dropping those that would turn negative.
    fn settle(&mut self) -> bool {
        while !self.chosen.is_empty() {
            let Some(z) = solve(&self.gram, &self.moment, &self.chosen) else { return false };
            if z.iter().all(|z| *z > 0.0) {
                self.x.fill(0.0);
                self.chosen.iter().zip(&z).for_each(|(j, z)| self.x[*j] = *z);
                return true;
            }
            self.step_towards(&z);
        }
        true
    }

    /// Moves from `x` towards `z` until the first coordinate reaches zero, and drops it.
    fn step_towards(&mut self, z: &[f64]) {
        let ratio = |(j, z): (&usize, &f64)| self.x[*j] / (self.x[*j] - z);
        let falling = self.chosen.iter().zip(z).filter(|(_, z)| **z <= 0.0);
        let step = falling.map(ratio).fold(1.0, f64::min);
        for (j, z) in self.chosen.iter().zip(z) {
            self.x[*j] += step * (z - self.x[*j]);
        }
        let (x, tiny) = (&mut self.x, 1e-14);
        self.chosen.retain(|j| x[*j] > tiny);
        (0..x.len()).filter(|j| !self.chosen.contains(j)).for_each(|j| x[j] = 0.0);
    }
}

/// Cholesky solve of the chosen rows and columns; `None` when they depend on each other.
fn solve(gram: &Matrix, moment: &[f64], chosen: &[usize]) -> Option<Vec<f64>> {
    let n = chosen.len();
    let mut lower = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = gram[chosen[i]][chosen[j]] - known;
            lower[i][j] = if i == j { rest.max(0.0).sqrt() } else { rest / lower[j][j] };
        }
        if lower[i][i] < 1e-7 {
            return None;
        }
    }
    let mut y = vec![0.0; n];
    for i in 0..n {
        let known: f64 = (0..i).map(|k| lower[i][k] * y[k]).sum();
        y[i] = (moment[chosen[i]] - known) / lower[i][i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| lower[k][i] * y[k]).sum();
        y[i] = (y[i] - known) / lower[i][i];
    }
    Some(y)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(found: &[f64], expected: &[f64]) {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6 * b.abs().max(1.0);
        assert!(found.iter().zip(expected).all(near), "{found:?} is not {expected:?}");
    }

    #[test]
    fn an_exact_line_is_found() {
        let rows: Vec<_> = (1..=5).map(|n| vec![1.0, f64::from(n)]).collect();
        let b: Vec<_> = (1..=5).map(|n| 7.0 + 3.0 * f64::from(n)).collect();
        close(&nnls(&rows, &b), &[7.0, 3.0]);
    }

    #[test]
    fn a_negative_intercept_is_held_at_zero() {
        let rows: Vec<_> = (1..=4).map(|n| vec![1.0, f64::from(n)]).collect();
        let b: Vec<_> = (1..=4).map(|n| 2.0 * f64::from(n) - 1.0).collect();
        // Without an intercept: sum(n b) / sum(n²) = (1 + 6 + 15 + 28) / 30.
        close(&nnls(&rows, &b), &[0.0, 50.0 / 30.0]);
    }

    #[test]
    fn columns_without_information_get_nothing() {
        let rows = vec![vec![1.0, 2.0, 0.0], vec![1.0, 2.0, 0.0]];
        let x = nnls(&rows, &[4.0, 4.0]);
        assert_eq!(x[2], 0.0);
        assert!((x[0] + 2.0 * x[1] - 4.0).abs() < 1e-9, "{x:?}");
        assert!(nnls(&[], &[]).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The conditions of Karush, Kuhn and Tucker: x >= 0; the gradient is zero where
        /// x > 0 and not descending where x = 0.
        #[test]
        fn the_answer_is_optimal(
            rows in prop::collection::vec(prop::collection::vec(0.0..9.0f64, 3), 4..12),
            seed in prop::collection::vec(-5.0..20.0f64, 12),
        ) {
            let b = &seed[..rows.len()];
            let x = nnls(&rows, b);
            let residual: Vec<f64> = rows.iter().zip(b)
                .map(|(row, b)| b - row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>())
                .collect();
            for j in 0..3 {
                let slope: f64 = rows.iter().zip(&residual).map(|(row, r)| row[j] * r).sum();
                prop_assert!(x[j] >= 0.0);
                prop_assert!(slope < 1e-5, "column {} would still descend: {}", j, slope);
                prop_assert!(x[j] == 0.0 || slope.abs() < 1e-5, "column {}: {}", j, slope);
            }
        }
    }
}
