//! How often each expert was chosen, counted while the router chooses: the dashboard's heat
//! map. Counting costs one addition per routed row.

use motley_engine::{RoutedBlock, RoutingWatcher};
use motley_model::ModelSpec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often each expert was chosen, `[layers][experts]`.
pub(crate) struct ExpertCounts {
    layers: usize,
    experts: usize,
    counts: Vec<AtomicU64>,
}

impl ExpertCounts {
    pub(crate) fn new(spec: &ModelSpec) -> Self {
        let (layers, experts) = (spec.layers.len(), spec.experts as usize);
        let counts = (0..layers * experts).map(|_| AtomicU64::new(0)).collect();
        Self { layers, experts, counts }
    }

    /// A watcher that counts into `counts`.
    pub(crate) fn watcher(counts: &Arc<Self>) -> Box<dyn RoutingWatcher> {
        Box::new(Watcher(Arc::clone(counts)))
    }

    /// (layer, count of each expert), for every layer.
    pub(crate) fn rows(&self) -> Vec<(usize, Vec<u64>)> {
        let row = |layer: usize| {
            let counts = &self.counts[layer * self.experts..][..self.experts];
            (layer, counts.iter().map(|count| count.load(Relaxed)).collect())
        };
        (0..self.layers).map(row).collect()
    }
}

struct Watcher(Arc<ExpertCounts>);

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
