//! How many slots a cache has. Data only.

use motley_trace::ExpertGrid;

/// How many slots there are and who shares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// One pool for all layers.
    Global {
        /// Slots of the pool.
        slots: u32,
    },
    /// One pool per layer (HybriMoE); the length is the number of layers.
    PerLayer {
        /// Slots of each layer.
        slots: Vec<u32>,
    },
}

impl Capacity {
    /// A pool of `share` (0..=1) of all experts of `grid`, rounded to whole slots.
    pub fn global_share(grid: ExpertGrid, share: f64) -> Self {
        Self::Global { slots: slots_of(grid.len(), share) }
    }

    /// `share` (0..=1) of each layer's experts, rounded to whole slots.
    pub fn per_layer_share(grid: ExpertGrid, share: f64) -> Self {
        let slots = slots_of(usize::from(grid.experts), share);
        Self::PerLayer { slots: vec![slots; usize::from(grid.layers)] }
    }

    /// Slots of all pools together.
    pub fn total(&self) -> u32 {
        match self {
            Self::Global { slots } => *slots,
            Self::PerLayer { slots } => slots.iter().sum(),
        }
    }
}

fn slots_of(experts: usize, share: f64) -> u32 {
    (experts as f64 * share.clamp(0.0, 1.0)).round() as u32
}
