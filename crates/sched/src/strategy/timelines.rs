//! H1 as a strategy: the plan is the filled timelines.

use super::Strategy;
use crate::timeline::Timelines;
use crate::work::{LayerPlan, LayerWork};

/// Simulates the layer and takes the allocation that comes out.
#[derive(Debug, Default)]
pub struct TimelineStrategy {
    timelines: Timelines,
    fixed_residents: bool,
}

impl TimelineStrategy {
    /// What is transferred does not stay: scheduling alone, without a changing cache.
    pub fn with_fixed_residents() -> Self {
        Self { fixed_residents: true, ..Self::default() }
    }
}

impl Strategy for TimelineStrategy {
    fn name(&self) -> &'static str {
        "timelines"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        self.timelines.plan(work, plan);
    }

    fn keeps_loaded(&self) -> bool {
        !self.fixed_residents
    }
}
