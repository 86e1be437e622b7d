//! What the planner forgets when the cache has lost it, or shall. Plans nothing.

use super::cells::Cells;
use super::planner::Planner;
use super::saved::States;
use super::sequence::Role;
use super::{Change, RequestId};

impl Planner {
    /// The request that `sequence` answers.
    pub fn request_of(&self, sequence: u16) -> Option<RequestId> {
        match self.sequences.get(usize::from(sequence))?.as_ref()?.role {
            Role::Active { request, .. } => Some(request),
            Role::Kept { .. } => None,
        }
    }

    /// The cache was emptied: no sequence holds anything any more, and changes not handed out
    /// are void. The requests that had a sequence, which are finished with this, oldest first.
    pub fn reset(&mut self) -> Vec<RequestId> {
        let order = self.oldest_first();
        let held = order.into_iter().filter_map(|at| self.request_of(at as u16)).collect();
        self.sequences.fill(None);
        self.cells = Cells::new(self.limits.cells);
        self.states = States::new(self.limits.sharing);
        // What was on disk still is.
        self.changes.retain(|change| matches!(change, Change::Erase { .. }));
        held
    }

    /// Forgets every kept prefix.
    pub fn forget_prefixes(&mut self) {
        while self.forget_oldest_kept() {}
    }
}

#[cfg(test)]
mod tests {
    use crate::batch::{BatchLimits, ClientId, Planner, Prompt, RequestId, Sharing};

    #[test]
    fn after_a_reset_nothing_is_held_and_those_who_wait_still_do() {
        let mut planner = Planner::new(BatchLimits {
            sequences: 1,
            cells: 64,
            longest_tokens: u32::MAX,
            step_tokens: 64,
            prefill_beside_decode: 64,
            step_time: None,
            waiting: 8,
            sharing: Sharing::Prefixes,
        });
        for id in 0..2 {
            let prompt = Prompt {
                client: ClientId(0).into(),
                tokens: vec![7; 20],
                chunk_tokens: 64,
                boundaries: vec![],
            };
            planner.submit(RequestId(id), prompt).unwrap();
        }
        assert_eq!(planner.plan().parts.len(), 1);
        assert_eq!(planner.request_of(0), Some(RequestId(0)));
        assert_eq!(planner.reset(), [RequestId(0)]);
        let figures = planner.figures();
        assert_eq!((figures.cells_used, figures.active, figures.waiting), (0, 0, 1));
        let step = planner.plan();
        assert_eq!((step.changes.len(), step.parts[0].request), (0, RequestId(1)));
    }
}
