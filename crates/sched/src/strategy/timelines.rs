//! H1 as a strategy: the plan is the filled timelines.

use super::Strategy;
use crate::timeline::Timelines;
use crate::work::{LayerPlan, LayerWork};

/// Simulates the layer and takes the allocation that comes out.
#[derive(Debug, Default)]
pub struct TimelineStrategy {
    timelines: Timelines,
}

impl Strategy for TimelineStrategy {
    fn name(&self) -> &'static str {
        "timelines"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        self.timelines.plan(work, plan);
    }
}
