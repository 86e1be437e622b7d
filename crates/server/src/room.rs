//! The machine room: which experts were used how often, as counted while the router
//! chooses. Counting costs one addition per routed row.

use motley_engine::{RoutedBlock, RoutingWatcher};
use motley_model::ModelSpec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often each expert was chosen, `[layers][experts]`.
pub(crate) struct Heat {
    layers: usize,
    experts: usize,
    counts: Vec<AtomicU64>,
}

impl Heat {
    pub(crate) fn new(spec: &ModelSpec) -> Self {
        let (layers, experts) = (spec.layers.len(), spec.experts as usize);
        let counts = (0..layers * experts).map(|_| AtomicU64::new(0)).collect();
        Self { layers, experts, counts }
    }

    /// Counts into `heat`.
    pub(crate) fn watcher(heat: &Arc<Self>) -> Box<dyn RoutingWatcher> {
        Box::new(Watcher(Arc::clone(heat)))
    }

    /// Counts of the layers that have experts: (layer, count of each expert).
    pub(crate) fn rows(&self) -> Vec<(usize, Vec<u64>)> {
        let row = |layer: usize| {
            let counts = &self.counts[layer * self.experts..][..self.experts];
            (layer, counts.iter().map(|count| count.load(Relaxed)).collect())
        };
        (0..self.layers).map(row).collect()
    }
}

struct Watcher(Arc<Heat>);

impl RoutingWatcher for Watcher {
    fn on_routed(&mut self, routed: &RoutedBlock) {
        let first = routed.layer as usize * self.0.experts;
        for &expert in &routed.experts {
            if let Some(count) = self.0.counts.get(first + expert as usize) {
                count.fetch_add(1, Relaxed);
            }
        }
    }
}
