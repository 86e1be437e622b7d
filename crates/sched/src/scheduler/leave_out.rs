//! Which pairs of a layer are left out before it is routed: the scheduler knows what would have to be
//! read, `skip` which of that counts little.

use motley_cost::Nanos;
use motley_trace::ExpertKey;

use super::Scheduler;
use crate::skip::{LeftOut, RoutedPairs, SkipCold};
use crate::work::Whereabouts;

impl Scheduler {
    /// The same, leaving out weak pairs that would have to be read.
    #[must_use]
    pub fn skipping(self, skip_cold: Option<SkipCold>) -> Self {
        Self { skip_cold, ..self }
    }

    /// Whether pairs may be left out: their weights are needed then.
    pub fn may_leave_out(&self) -> bool {
        self.skip_cold.is_some()
    }

    /// The pairs of a layer, about to be routed, that are left out: not one while memory has room,
    /// so that what is read now is there later. The driver then routes the others only.
    pub fn leave_out(
        &self,
        now: Nanos,
        pairs: &RoutedPairs<'_>,
        left_out: &mut Vec<bool>,
    ) -> LeftOut {
        left_out.clear();
        left_out.resize(pairs.experts.len(), false);
        let cache = self.cache(0);
        let from_disk = self.costs.home.is_none();
        let Some(skip) = self.skip_cold.filter(|_| from_disk && cache.resident() >= cache.usable())
        else {
            return LeftOut::default();
        };
        let nowhere = Whereabouts::default();
        let at = |expert| self.whereabouts(ExpertKey::new(pairs.layer, expert), now);
        skip.choose(pairs, |expert| at(expert) == nowhere, left_out)
    }
}
