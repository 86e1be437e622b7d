//! Several machines, one model (W9): which host has which experts, and whether that pays. Decides
//! before a run; who computes a row during it is `motley_sched::remote`.
//!
//! - [`place`]: every expert once, by layers or by use.
//! - [`replicas`]: copies of the most used in the room left over.
//! - [`divide`]: both together, over the head and its workers.
//! - [`balance`]: how much the head keeps, as rows to others take time.
//! - [`pays`]: the speed to expect with workers, alone, and split by layers.
//! - `slowest`: the mean of the last of several.

pub mod balance;
pub mod divide;
pub mod pays;
pub mod place;
pub mod replicas;
mod slowest;

pub use balance::{Block, rows_there, worker_speed};
pub use divide::{Division, Uses};
pub use pays::{Advised, Others, RemoteAdvice, RemoteCase, remote_pays};
pub use place::{by_layers, by_use};
pub use replicas::replicate;

use motley_trace::{ExpertGrid, ExpertKey};

/// A machine that has experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// Experts it has room for.
    pub slots: u32,
    /// How fast it computes them, relative to the other hosts; above 0.
    pub speed: f64,
}

/// How much an expert counts. One that nobody used yet may be used all the same.
fn weight(uses: u64) -> f64 {
    uses as f64 + 1.0
}

/// Every expert, layer by layer.
pub fn all_experts(grid: ExpertGrid) -> impl Iterator<Item = ExpertKey> {
    let of_layer = move |layer| (0..grid.experts).map(move |expert| ExpertKey::new(layer, expert));
    (0..grid.layers).flat_map(of_layer)
}

/// What each host has to do in each layer. Layers take turns, so hosts are even when they are even
/// in every one.
struct LayerLoads {
    hosts: usize,
    loads: Vec<f64>,
}

impl LayerLoads {
    fn new(grid: ExpertGrid, hosts: usize) -> Self {
        Self { hosts, loads: vec![0.0; usize::from(grid.layers) * hosts] }
    }

    fn of(&self, layer: u16, host: usize) -> f64 {
        self.loads[usize::from(layer) * self.hosts + host]
    }

    fn add(&mut self, layer: u16, host: usize, weight: f64) {
        self.loads[usize::from(layer) * self.hosts + host] += weight;
    }
}
