//! When each read under way was asked for: the disk takes several at a time and reports ends only.

use motley_cost::Nanos;
use motley_sched::Purpose;
use motley_trace::ExpertKey;

/// The reads under way.
#[derive(Debug, Default)]
pub(super) struct Reads {
    asked: Vec<(ExpertKey, Purpose, Nanos)>,
    disk_free: Nanos,
}

impl Reads {
    pub(super) fn asked(&mut self, key: ExpertKey, purpose: Purpose, now: Nanos) {
        self.asked.push((key, purpose, now));
    }

    /// A read has ended: what for, and when it began. Reads that wait for others begin when those
    /// end.
    pub(super) fn landed(&mut self, key: ExpertKey, now: Nanos) -> Option<(Purpose, Nanos)> {
        let at = self.asked.iter().position(|(asked, ..)| *asked == key)?;
        let (_, purpose, asked) = self.asked.swap_remove(at);
        let begun = asked.max(self.disk_free);
        self.disk_free = now;
        Some((purpose, begun))
    }
}
