//! What a group costs on the static-graph device: our cost model fitted to Table 5.
//!
//! ```text
//! per token = launch / (G·C) + weights / C + row
//! ```
//!
//! A graph of `G` experts with `C` rows each is launched once, reads every expert's weights once
//! and computes every row.

use motley_cost::{ComputeCost, Residuals, nnls::nnls};

/// First row of Table 5, serial execution: ms per token of a graph of one expert that takes any
/// number of rows from 1 to 512. A shape that is not fixed has no place in the fitted model.
pub const ANY_ROWS_MS: f64 = 0.25;
/// The other rows of Table 5: experts per graph, rows per expert, and ms per token, serial
/// execution.
pub const TABLE5: [(u32, u32, f64); 11] = [
    (1, 32, 0.31),
    (1, 64, 0.23),
    (1, 128, 0.16),
    (4, 32, 0.27),
    (4, 64, 0.19),
    (8, 32, 0.26),
    (8, 64, 0.18),
    (8, 96, 0.15),
    (8, 128, 0.14),
    (8, 192, 0.15),
    (8, 256, 0.16),
];
/// Largest graph the fit takes in: beyond, the source's own figures rise again.
const FITTED_ROWS: u32 = 1024;
/// Table 4: expert network of one layer on the CPU, for 2048 rows in chunks of 256 tokens.
const CPU_LAYER_US: f64 = 969_530.0;
const CPU_LAYER_ROWS: f64 = 2048.0;

/// The costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceCosts {
    /// One launch.
    pub launch_us: f64,
    /// One expert's weights.
    pub weights_us: f64,
    /// One row.
    pub row_us: f64,
    /// Error of the fit over its samples.
    pub residuals: Residuals,
    /// One expert on the CPU.
    pub cpu: ComputeCost,
}

impl DeviceCosts {
    /// Fits the three costs.
    pub fn fit() -> Self {
        let fitted = || TABLE5.iter().filter(|(g, c, _)| g * c <= FITTED_ROWS);
        let row =
            |(g, c, _): &(u32, u32, f64)| vec![1.0 / f64::from(g * c), 1.0 / f64::from(*c), 1.0];
        let rows: Vec<_> = fitted().map(row).collect();
        let took: Vec<f64> = fitted().map(|(_, _, ms)| 1e3 * ms).collect();
        let x = nnls(&rows, &took);
        let per_row_us = CPU_LAYER_US / CPU_LAYER_ROWS;
        let mut costs = Self {
            launch_us: x[0],
            weights_us: x[1],
            row_us: x[2],
            residuals: Residuals::default(),
            cpu: ComputeCost { launch_us: 0.0, per_token_us: per_row_us, floor_us: 0.0 },
        };
        let pairs = fitted().map(|(g, c, ms)| (1e3 * ms, 1e3 * costs.per_token_ms(*g, *c)));
        costs.residuals = Residuals::over(pairs);
        costs
    }

    /// Table 5's figure.
    pub fn per_token_ms(&self, experts: u32, rows: u32) -> f64 {
        self.graph_us(experts, rows) / f64::from(experts * rows) / 1e3
    }

    /// One run of a graph.
    pub fn graph_us(&self, experts: u32, rows: u32) -> f64 {
        let (experts, rows) = (f64::from(experts), f64::from(rows));
        self.launch_us + experts * (self.weights_us + rows * self.row_us)
    }
}
